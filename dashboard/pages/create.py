"""Create a Lease: check, dry run, preview, write.

Source: client-go's leaderelection.go; its default retry period is 2 s.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import check_editor, check_writable, find_cluster
from dashboard.forms.create_form import CreateLeaseForm
from dashboard.parts.audit_line import intent_of
from dashboard.parts.formatting import seconds
from dashboard.parts.lease_head import to_yaml, without_managed_fields
from dashboard.parts.lease_row import lease_url
from dashboard.parts.names import holder_view
from dashboard.parts.write_access import may_write
from dashboard.watched_cluster import WatchedCluster
from leases.actions.audit import DONE, AlreadySent, sent_before
from leases.actions.write_lease import ACTION, NewLease, create_lease, preview
from leases.domain.lease import ObjectName
from leases.models import Edit
from leases.wire.status import AlreadyExists, ApiError


def meaning_of(new: NewLease, *, kept: Mapping[str, Any]) -> tuple[str, ...]:
    """`kept` is the spec that the server would store."""
    said = []
    if "strategy" in kept:
        said.append("The API server chooses the holder among the LeaseCandidates of this name.")
    elif not new.holder:
        said.append(
            "It starts vacant. An elector of this name takes it within its retry period, "
            "2 s by default."
        )
    if new.holder:
        holder = holder_view(new.holder)
        who = holder.short if holder else new.holder
        said.append(f"It starts held by {who}, with transitions at 0.")
        lasts = new.duration_seconds
        until = f"it expires: {seconds(lasts)}" if lasts else "somebody edits it"
        said.append(f"If {who} does not run, nobody acts until {until}.")
    if new.duration_seconds is None:
        said.append("It is untimed: it never runs out, and no elector takes it from a holder.")
    return tuple(said)


LOOKS, LOOK_SECONDS = 100, 0.05  # the watch usually reports a write within this time
STATUS_OF_ERROR = {0: 502, 401: 502, 403: 502, 404: 422, 409: 409, 422: 422}
FILLED_BY_URL = ("namespace", "name", "holder_identity", "duration_seconds")


@require_http_methods(["GET", "HEAD", "POST"])
async def new_lease(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """GET draws the form; POST asks for a dry run; POST with `confirm` writes."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = find_cluster(cluster)
    check_writable(watched)
    page = CreatePage(request, watched, cast("User", await request.auser()))
    if request.method != "POST":
        filled = {name: request.GET[name] for name in FILLED_BY_URL if name in request.GET}
        return await page.draw(CreateLeaseForm(initial=filled))
    return await page.submit()


class CreatePage:
    """One request for the form."""

    def __init__(self, request: HttpRequest, cluster: WatchedCluster, user: User) -> None:
        request.cluster = cluster  # type: ignore[attr-defined]
        self.request = request
        self.cluster = cluster
        self.user = user
        self.now: datetime = clock.now()

    async def submit(self) -> HttpResponseBase:
        saving = "confirm" in self.request.POST
        once = self.request.POST.get("once", "")
        if saving and (first := await sent_before(once, user=self.user, cluster=self.cluster.name)):
            return await self._sent_again(first)
        form = CreateLeaseForm(self.request.POST, saving=saving)
        if not await sync_to_async(form.is_valid)():  # it may be large
            return await self.draw(form, status=422)
        try:
            if not saving:
                return await self.draw(form, preview=await self._preview(form))
            await self._write(form)
        except AlreadySent as sent:
            return await self._sent_again(sent.row)
        except AlreadyExists:
            return await self.draw(form, exists=self._existing(form.wanted().key), status=409)
        except ApiError as error:
            text = form.place(error)
            status = STATUS_OF_ERROR.get(error.status.code, 502)
            return await self.draw(form, error=text, status=status)
        return await self._sent(form.wanted().key)

    async def _preview(self, form: CreateLeaseForm) -> dict[str, Any]:
        wanted = form.wanted()
        found = await preview(self.cluster.writer_for(self.user), wanted, now=self.now)
        after = without_managed_fields(found.after)
        for made_anew in ("uid", "creationTimestamp"):  # those of the dry run will not be the real
            after["metadata"].pop(made_anew, None)
        return {
            "yaml": to_yaml(after),
            "dropped": found.dropped,
            "warnings": found.warnings,
            "means": meaning_of(wanted, kept=after.get("spec") or {}),
        }

    async def _write(self, form: CreateLeaseForm) -> None:
        intent = await sync_to_async(intent_of)(
            self.request,
            self.cluster,
            form.wanted().key,
            action=ACTION,
            reason=form.cleaned_data["reason"],
            once=form.cleaned_data["once"],
        )
        client = self.cluster.writer_for(self.user)
        await create_lease(client, form.wanted(), intent=intent, clock=clock.now)

    def _existing(self, key: ObjectName) -> dict[str, Any]:
        known = self.cluster.store.get(key)
        return {
            "key": str(key),
            "url": lease_url(self.cluster.name, key),
            "holder": holder_view(known.holder) if known else None,
            "known": known is not None,
        }

    async def _sent_again(self, first: Edit) -> HttpResponseBase:
        """Say what became of the first sending."""
        if first.outcome == DONE:
            return await self._sent(ObjectName(first.namespace, first.name))
        return redirect("lease_outcome", first.cluster, first.namespace, first.name, first.pk)

    async def _sent(self, key: ObjectName) -> HttpResponseBase:
        """Lead to the new Lease, once the watch has reported it."""
        for _ in range(LOOKS):
            if self.cluster.store.get(key) is not None:
                text, url = f"{key} was created.", lease_url(self.cluster.name, key)
                break
            await asyncio.sleep(LOOK_SECONDS)
        else:
            text = f"{key} was created. The list shows it once the cluster reports it."
            url = reverse("leases", args=[self.cluster.name])
        await sync_to_async(messages.success)(self.request, text)
        return redirect(url)

    async def draw(
        self,
        form: CreateLeaseForm,
        *,
        preview: dict[str, Any] | None = None,
        exists: dict[str, Any] | None = None,
        error: str = "",
        status: int = 200,
    ) -> HttpResponse:
        namespace = form["namespace"].value()
        context = {
            "access": (
                await may_write(self.cluster, self.user, namespace, "create") if namespace else None
            ),
            "form": form,
            "preview": preview,
            "exists": exists,
            "error": error,
            "namespaces": self.cluster.store.namespaces()[:500],
        }
        return await sync_to_async(render)(
            self.request, "create/index.html", context, status=status
        )
