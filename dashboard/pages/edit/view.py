"""The edit form of one Lease: check, dry run, preview, confirm."""

from __future__ import annotations

from typing import Any, cast

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import check_edit, check_view, find_cluster
from dashboard.pages.edit.form import FIELD_OF_CAUSE, EditLeaseForm, initial_of
from dashboard.pages.edit.preview import (
    as_read,
    collisions,
    preview_view,
)
from dashboard.parts.kept.watched_cluster import WatchedCluster
from dashboard.parts.lease.row import row_view
from leases.actions.audit import Intent
from leases.actions.edit_lease import (
    ACTION,
    MAX_RETRIES,
    Preview,
    TermMoved,
    edit_lease,
    preview,
)
from leases.domain.lease import Lease, ObjectName
from leases.tracking.tracked_lease import Tracked
from leases.wire.status import ApiError, Conflict, Invalid

STATUS_OF_ERROR = {0: 502, 401: 502, 403: 502, 404: 404, 409: 409, 422: 422}


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_edit(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the form; POST asks for a dry run; POST with `confirm` writes."""
    refusal = await sync_to_async(_check_access)(request)
    if refusal is not None:
        return refusal
    page = EditPage(request, find_cluster(cluster), ObjectName(namespace, name))
    if request.method != "POST":
        return await page.draw(EditLeaseForm(initial=page.initial()))
    return await page.submit()


def _check_access(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None:
        check_edit(request.user)
    return refusal


class EditPage:
    """One request for the edit form."""

    def __init__(self, request: HttpRequest, cluster: WatchedCluster, key: ObjectName) -> None:
        tracked = cluster.store.get(key)
        if tracked is None:
            raise Http404(f"There is no Lease {key} in {cluster.name}. It may have been deleted.")
        request.cluster = cluster  # type: ignore[attr-defined]
        self.request = request
        self.cluster = cluster
        self.key = key
        self.tracked: Tracked = tracked
        self.now = clock.now()
        self.as_of = cluster.as_of(self.now)

    def initial(self) -> dict[str, object]:
        """The present values; `?holder=` fills in another holder."""
        initial = initial_of(self.tracked.lease)
        if "holder" in self.request.GET:
            initial["holder_identity"] = self.request.GET["holder"]
        return initial

    async def submit(self) -> HttpResponseBase:
        form = EditLeaseForm(self.request.POST)
        if not form.is_valid():
            return await self.draw(form, status=422)
        try:
            shown = await self._preview(form)
            if "confirm" not in self.request.POST:
                return await self.draw(form, preview=shown)
            await self._write(form)
        except TermMoved as moved:
            return await self._draw_conflict(form, moved.current)
        except ApiError as error:
            return await self._draw_error(form, error)
        text = f"The edit of {self.key} was sent. The page shows it once the cluster reports it."
        await sync_to_async(messages.success)(self.request, text)
        return redirect("lease", self.cluster.name, self.key.namespace, self.key.name)

    async def _preview(self, form: EditLeaseForm) -> dict[str, Any]:
        seen: Preview = await preview(
            self.cluster.writer,
            self.key,
            form.wanted(),
            seen_term=form.cleaned_data["seen_term"],
            now=self.now,
        )
        return preview_view(seen.before, seen.after, form.wanted(), kind=self.tracked.kind)

    async def _write(self, form: EditLeaseForm) -> None:
        intent = Intent(
            user=cast("User", await self.request.auser()),
            cluster=self.cluster.name,
            key=self.key,
            action=ACTION,
            reason=form.cleaned_data["reason"],
            at=self.now,
        )
        await edit_lease(
            self.cluster.writer,
            form.wanted(),
            intent=intent,
            seen_term=form.cleaned_data["seen_term"],
            clock=clock.now,
        )

    async def _draw_conflict(self, form: EditLeaseForm, current: Lease) -> HttpResponse:
        """Show the new holder beside the typed values; the next submit is for the new term."""
        typed = collisions(
            current,
            holder=form.cleaned_data["holder_identity"] if form.holder_touched else None,
            duration=form.data["duration_seconds"].strip() if form.duration_touched else None,
        )
        touched = form.holder_touched or form.duration_touched
        conflict = {"collisions": typed, "typed": touched}
        self.as_of = self.now
        self.tracked = as_read(self.tracked, current, self.now)
        return await self.draw(form.rebased(current), conflict=conflict, status=409)

    async def _draw_error(self, form: EditLeaseForm, error: ApiError) -> HttpResponse:
        unplaced = []
        for cause in error.causes:
            field = FIELD_OF_CAUSE.get(cause.field)
            if field is None:
                unplaced.append(f"{cause.field}: {cause.message}")
            else:
                form.add_error(field, cause.message)
        text = ""
        if isinstance(error, Conflict):
            tries = MAX_RETRIES + 1
            text = (
                f"The Lease changed during each of {tries} tries. Nothing was written; try again."
            )
        elif unplaced or not (isinstance(error, Invalid) and error.causes):
            text = f"The cluster refused: {'; '.join(unplaced) or error}"
        status = STATUS_OF_ERROR.get(error.status.code, 502)
        return await self.draw(form, error=text, status=status)

    async def draw(
        self,
        form: EditLeaseForm,
        *,
        preview: dict[str, Any] | None = None,
        conflict: dict[str, Any] | None = None,
        error: str | None = None,
        status: int = 200,
    ) -> HttpResponse:
        context = {
            "form": form,
            "lease": self.tracked,
            "row": row_view(self.cluster.name, self.tracked, self.as_of),
            "read_at": self.as_of,
            "preview": preview,
            "conflict": conflict,
            "error": error,
        }
        return await sync_to_async(render)(self.request, "leases/edit.html", context, status=status)
