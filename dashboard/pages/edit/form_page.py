"""What the forms that write to one Lease share: check, dry run, preview, write, conflict."""

from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractUser, User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render

from dashboard import clock
from dashboard.access.guards import check_editor, check_writable, find_cluster
from dashboard.forms.admin_form import AdminForm
from dashboard.forms.fields import Collision, press, writers_of
from dashboard.pages.edit.what_happens import WhatHappens
from dashboard.parts.audit_line import intent_of
from dashboard.parts.formatting import shortened
from dashboard.parts.lease_head import diff_lines, to_yaml, without_managed_fields
from dashboard.parts.lease_row import row_view
from dashboard.parts.write_access import may_write
from dashboard.watched_cluster import WatchedCluster
from leases.actions.audit import AlreadySent, sent_before
from leases.actions.write_lease import MAX_RETRIES, DryRun, Guard, Moved, dry_run, write_lease
from leases.domain.edit import Kept, LeaseWrite, term_of
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import EMPTY, phase_of
from leases.models import Edit
from leases.tracking.tracked_lease import Tracked
from leases.wire.status import ApiError, Conflict

MAX_SHOWN = 160
GATED = ("spec.strategy", "spec.preferredHolder")


class VerdictView(msgspec.Struct, frozen=True, kw_only=True):
    """`diff` has lines with their sign; `dropped` are sentences about fields it would not take."""

    diff: list[tuple[str, str]]
    warnings: tuple[str, ...]
    dropped: tuple[str, ...]


def verdict_view(verdict: DryRun) -> VerdictView:
    return VerdictView(
        diff=difference(verdict.before, verdict.after),
        warnings=verdict.warnings,
        dropped=tuple(_dropped(kept) for kept in verdict.not_taken),
    )


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    """Compare the spec, and other parts only if they differ."""
    sides = [_lasting(side) for side in (before, after)]
    parts = [part for part in sides[1] if part == "spec" or sides[0].get(part) != sides[1][part]]
    texts = [to_yaml({part: side[part] for part in parts if part in side}) for side in sides]
    return diff_lines(*texts)


def _lasting(item: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that every write changes."""
    item = without_managed_fields(item)
    item["metadata"].pop("resourceVersion", None)
    return item


def _dropped(kept: Kept) -> str:
    sent = shortened(_text(kept.sent), MAX_SHOWN)
    if kept.got is not None:
        got = shortened(_text(kept.got), MAX_SHOWN)
        return f"{kept.path}: the server would make it {got} instead of {sent}."
    why = ""
    if kept.path in GATED:
        why = " Its feature gate CoordinatedLeaderElection is off."
    return f"{kept.path}: the server would silently drop {sent}.{why}"


def _text(value: Any) -> str:
    return "nothing" if value in (None, "") else str(value)


def as_read(tracked: Tracked, current: Lease, now: datetime) -> Tracked:
    observed_at = min(now, current.spec.renew_time or now)
    read = tracked.replace(
        lease=current,
        observed_at=observed_at,
        estimated=True,
        renewals_seen=0,
        intervals=EMPTY,
        phase_since=observed_at,
    )
    held_since = None if read.holder is None else current.spec.acquire_time
    return read.replace(phase=phase_of(read, now), held_since=held_since)


STATUS_OF_ERROR = {0: 502, 401: 502, 403: 502, 404: 404, 409: 409, 422: 422}


F = TypeVar("F", bound=AdminForm)


class FormPage(Generic[F]):
    """One request for a form of one Lease. Each form is a subclass."""

    template: ClassVar[str]
    previews_at_once: ClassVar[bool] = False  # GET asks for the dry run: there is nothing to type

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
        self.user: AbstractUser

    def unbound(self) -> F:
        raise NotImplementedError

    def bound(self, data: QueryDict, *, saving: bool) -> F:
        raise NotImplementedError

    def guard(self, form: F) -> Guard:
        """Refuse a Lease that is not as the form showed it."""
        raise NotImplementedError

    def rebased(self, form: F, current: dict[str, Any]) -> F:
        """The same form for the present Lease."""
        raise NotImplementedError

    def previewed(self, form: F, verdict: DryRun) -> F:
        """The form to draw beside its preview."""
        return form

    def seen_term(self, form: F) -> str:
        """The term that the form was drawn for."""
        return str(form.cleaned_data["seen_term"])

    def collisions(self, form: F, moved: Moved) -> tuple[Collision, ...]:
        return ()

    def what_happens(self, form: F) -> WhatHappens | None:
        raise NotImplementedError

    def wanted(self, form: F) -> LeaseWrite:
        raise NotImplementedError

    async def prepare(self) -> None:
        """Read what the form needs."""

    async def answer(self) -> HttpResponseBase:
        self.user = await self.request.auser()  # type: ignore[assignment]
        await self.prepare()
        if self.request.method != "POST":
            return await self.first()
        pressed = press(self.request.POST)
        if pressed is not None:
            return await self.draw(self.bound(pressed, saving=False).without_errors(), quiet=True)
        saving = "confirm" in self.request.POST
        if saving and (first := await self._sent_before()):
            return self._to_outcome(first)
        form = self.bound(self.request.POST, saving=saving)
        # What people send may be large: it is read, compared and drawn in the request's own thread.
        if not await sync_to_async(form.is_valid)():
            return await self.draw(form, status=422)
        return await self._submit(form)

    async def first(self) -> HttpResponseBase:
        form = self.unbound()
        if not self.previews_at_once:
            return await self.draw(form)
        try:
            verdict = await self._verdict(form)
        except ApiError as error:
            return await self.draw(form, error=f"The cluster would refuse this: {error}")
        except Moved:  # between our watch and this request: the next look shows it
            return await self.draw(form)
        return await self.draw(form, verdict=verdict)

    async def _submit(self, form: F) -> HttpResponseBase:
        try:
            verdict = await self._verdict(form)
            if not form.saving:
                previewed = await sync_to_async(self.previewed)(form, verdict)
                return await self.draw(previewed, verdict=verdict)
            row = await self._write(form)
        except AlreadySent as sent:
            return self._to_outcome(sent.row)
        except Moved as moved:
            return await self._draw_conflict(form, moved)
        except ApiError as error:
            return await self._draw_error(form, error)
        return self._to_outcome(row)

    async def _verdict(self, form: F) -> DryRun:
        return await dry_run(
            self.cluster.writer_for(self.user),
            self.key,
            self.wanted(form),
            guard=self.guard(form),
            now=self.now,
        )

    async def _write(self, form: F) -> Edit:
        write = self.wanted(form)
        intent = await sync_to_async(intent_of)(
            self.request,
            self.cluster,
            self.key,
            action=write.action,
            reason=form.cleaned_data["reason"],
            once=form.cleaned_data["once"],
        )
        return await write_lease(
            self.cluster.writer_for(self.user),
            write,
            intent=intent,
            guard=self.guard(form),
            clock=clock.now,
        )

    async def _sent_before(self) -> Edit | None:
        """The first sending of this form: the Lease is no longer as it was drawn, because of it."""
        once = self.request.POST.get("once", "")
        return await sent_before(once, user=cast("User", self.user), cluster=self.cluster.name)

    def _to_outcome(self, row: Edit) -> HttpResponse:
        return redirect("lease_outcome", row.cluster, row.namespace, row.name, row.pk)

    async def _draw_conflict(self, form: F, moved: Moved) -> HttpResponse:
        """Show both sides; the next submit is for the Lease as it is now."""
        found = await sync_to_async(self.collisions)(form, moved)
        self.tracked = as_read(self.tracked, moved.lease, self.now)
        another_term = term_of(moved.lease) != self.seen_term(form)
        conflict: dict[str, Any] = {"collisions": found, "another_term": another_term}
        conflict["writers"] = writers_of(found, moved.current)
        rebased = await sync_to_async(self.rebased)(form, moved.current)
        return await self.draw(rebased, conflict=conflict, status=409)

    async def _draw_error(self, form: F, error: ApiError) -> HttpResponse:
        if isinstance(error, Conflict):
            tries = MAX_RETRIES + 1
            text = f"The Lease changed during each of {tries} tries. Try again."
        else:
            text = self.place(form, error)
        status = STATUS_OF_ERROR.get(error.status.code, 502)
        return await self.draw(form, error=text, status=status)

    def place(self, form: F, error: ApiError) -> str:
        return form.place(error)

    async def draw(
        self,
        form: F,
        *,
        verdict: DryRun | None = None,
        conflict: dict[str, Any] | None = None,
        error: str = "",
        quiet: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        """`quiet`: show no errors, because the person still types."""
        access = await may_write(self.cluster, self.user, self.key.namespace, "patch")

        def drawn() -> HttpResponse:
            context = self._context(form, verdict, quiet=quiet)
            more = {"conflict": conflict, "error": error, "access": access}
            return render(self.request, self.template, context | more, status=status)

        return await sync_to_async(drawn)()

    def _context(self, form: F, verdict: DryRun | None, *, quiet: bool) -> dict[str, Any]:
        return {
            "form": form,
            "quiet": quiet,
            "lease": self.tracked,
            "row": row_view(self.cluster.name, self.tracked, self.as_of),
            "read_at": self.as_of,
            "verdict": None if verdict is None else verdict_view(verdict),
            "happens": None if quiet else self.what_happens(form),
        }


async def answer(
    page: type[FormPage[Any]], request: HttpRequest, cluster: str, key: ObjectName
) -> HttpResponseBase:
    """Check access, then let the page answer."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = find_cluster(cluster)
    check_writable(watched)
    return await page(request, watched, key).answer()
