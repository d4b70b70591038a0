"""One flow for all forms that write one Lease: show, ask the server, preview, write, tell."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, cast
from urllib.parse import urlencode

import msgspec
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import check_editor, check_writable, find_cluster
from dashboard.forms.admin_form import refuses, why_not
from dashboard.forms.edit_form import LeaseForm
from dashboard.forms.fields import press, writers_of
from dashboard.forms.what_happens import WhatHappens, short
from dashboard.parts.audit_line import intent_of
from dashboard.parts.change_sentence import change_line, changes_of
from dashboard.parts.cluster_write_access import WriteAccess, may_write
from dashboard.parts.formatting import shortened, when
from dashboard.parts.lease_head import diff_lines, to_yaml, without_managed_fields
from dashboard.parts.lease_row import row_view
from dashboard.parts.names import lease_url
from dashboard.watched_cluster import WatchedCluster
from leases.actions.audit import AlreadySent, sent_before
from leases.actions.write_lease import MAX_RETRIES, DryRun, Moved, dry_run, write_lease
from leases.domain.change import Observation
from leases.domain.edit import Kept, is_of_another_lease, term_of
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase, phase_of
from leases.models import Edit
from leases.tracking.observation import first_sight, next_sight, turned
from leases.tracking.tracked_lease import Tracked
from leases.wire.status import ApiError, Conflict, NotFound, Unreachable

MAX_SHOWN = 160
PREVIEW_SECONDS = 12.0  # a webhook of the API server may take 10 s, unless it says otherwise
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


def as_read(
    cluster: str, tracked: Tracked, current: Lease, now: datetime, *, as_of: datetime
) -> Tracked:
    """The Lease as it was just read, as the watch will tell it, which knows it as of `as_of`."""
    if tracked.lease.resource_version == current.resource_version:
        return tracked
    behind = as_of < now
    seen = Observation(now=now, since=as_of if behind else None, inferred=behind)
    if tracked.lease.uid == current.uid:
        read, _ = next_sight(cluster, tracked, current, seen)
    else:
        anew, _ = first_sight(cluster, current, seen)
        read = anew.replace(kind=tracked.kind, kind_reason=tracked.kind_reason)
    if phase_of(read, now) is read.phase:
        return read
    return turned(cluster, read, now, by=now, unseen_since=None)[0]


def by_now(tracked: Tracked, now: datetime) -> str:
    """Who holds a Lease that changed while a form was open."""
    name = short(tracked.holder)
    if tracked.phase is Phase.EXPIRED:
        return f"{name} is still named, but it has expired"
    since = "" if tracked.held_since is None else f", since {when(tracked.held_since, now)}"
    return f"{name} holds it by now{since}"


F = TypeVar("F", bound=LeaseForm)
STATUS_OF_ERROR = {404: 422, 409: 409, 422: 422}  # those about what was typed


class ActionPage(Generic[F]):
    """One request for a form that writes one Lease. Each action is a subclass."""

    template: ClassVar[str]
    form_class: type[F]
    verb: ClassVar[str] = "patch"
    asks_when_opened: ClassVar[bool] = False  # GET asks for the dry run: there is nothing to type
    asks_before_writing: ClassVar[bool] = True
    writes_at_once: ClassVar[bool] = False  # the form itself confirms
    is_gone = False  # the Lease was deleted after the form was drawn

    def __init__(self, request: HttpRequest, cluster: WatchedCluster, user: User) -> None:
        request.cluster = cluster  # type: ignore[attr-defined]
        self.request, self.cluster, self.user = request, cluster, user
        self.now = clock.now()
        self.as_of = cluster.as_of(self.now)

    async def prepare(self) -> None:
        """Read what the form needs."""

    def initial(self) -> dict[str, Any]:
        """What the form shows first."""
        raise NotImplementedError

    def given(self) -> dict[str, Any]:
        """What the form is made with, besides what was typed."""
        return {}

    def made(
        self, data: QueryDict | None = None, *, saving: bool = False, current: Lease | None = None
    ) -> F:
        """The form, bound to `data` if there is any."""
        initial = self.initial() if data is None else None
        given = self.given()
        return self.form_class(data, initial=initial, saving=saving, current=current, **given)

    def key_of(self, form: F) -> ObjectName:
        raise NotImplementedError

    async def access(self, form: F) -> WriteAccess | None:
        """What the cluster would refuse, before it is asked for a dry run."""
        raise NotImplementedError

    def context(self, form: F, verdict: DryRun | None, *, quiet: bool) -> dict[str, Any]:
        raise NotImplementedError

    def previewed(self, form: F, verdict: DryRun) -> F:
        """The form to draw beside its preview."""
        return form

    def doubt(self, form: F, verdict: DryRun) -> str:
        """Why the person has to be asked once more before this is written; "" if not."""
        return ""

    async def moved(self, form: F, moved: Moved) -> HttpResponse:
        """Show both sides."""
        raise NotImplementedError

    async def gone(self) -> HttpResponse:
        """Keep what was typed, and offer to create the Lease with it."""
        raise NotImplementedError

    async def answer(self) -> HttpResponseBase:
        if self.request.method != "POST":
            await self.prepare()
            return await self.first()
        saving = self.writes_at_once or "confirm" in self.request.POST
        # The first sending of this form: the Lease is no longer as it was drawn, because of it.
        once = self.request.POST.get("once", "")
        if saving and (first := await sent_before(once, user=self.user, cluster=self.cluster.name)):
            return await self.written(first)
        if self.is_gone:
            return await self.gone()
        await self.prepare()
        pressed = press(self.request.POST)
        if pressed is not None:
            return await self.draw(self.made(pressed).without_errors(), quiet=True)
        form = self.made(self.request.POST, saving=saving)
        # What people send may be large: it is read, compared and drawn in the request's own thread.
        if not await sync_to_async(form.is_valid)():
            return await self.incomplete(form)
        try:
            if not saving or self.asks_before_writing:
                verdict = await self.ask(form)
                doubt = await sync_to_async(self.doubt)(form, verdict)
                if not saving or doubt:
                    shown = await sync_to_async(self.previewed)(form, verdict)
                    error, status = (doubt, 422) if saving else ("", 200)
                    return await self.draw(shown, verdict=verdict, error=error, status=status)
            row = await self._write(form)
        except AlreadySent as sent:
            row = sent.row
        except Moved as moved:
            return await self.moved(form, moved)
        except ApiError as error:
            name = self.cluster.name
            left = await sent_before(once, user=self.user, cluster=name) if saving else None
            if left is None or left.outcome != Edit.INTENDED:
                return await self.refused(form, error)
            row = left  # it may have been carried out
        return await self.written(row)

    async def first(self) -> HttpResponse:
        form = self.made()
        if not self.asks_when_opened:
            return await self.draw(form)
        try:
            verdict = await self.ask(form)
        except ApiError as error:
            if refuses(error):
                return await self.draw(form, refused=f"The cluster would refuse this: {error}")
            return await self.draw(form, refused=why_not(error), unanswered=True)
        except Moved:  # between our watch and this request: the next look shows it
            return await self.draw(form)
        return await self.draw(form, verdict=verdict)

    async def incomplete(self, form: F) -> HttpResponse:
        """Say what is wrong. If only the reason is missing, what was previewed is so still."""
        verdict = None
        if form.saving and not self.writes_at_once and form.errors.keys() == {"reason"}:
            with suppress(ApiError, Moved):
                verdict = await self.ask(form)
        return await self.draw(form, verdict=verdict, status=422)

    async def ask(self, form: F) -> DryRun:
        """Ask what the write would do: before a write as long as the write may take. Raises Moved,
        or ApiError.
        """
        client, key = self.cluster.writer_for(self.user), self.key_of(form)
        try:
            async with asyncio.timeout(None if form.saving else PREVIEW_SECONDS):
                return await dry_run(client, key, form.wanted(), guard=form.guard, now=self.now)
        except TimeoutError as error:
            sentence = f"{self.cluster.name} did not answer within {PREVIEW_SECONDS:g} s."
            raise Unreachable(sentence) from error

    async def _write(self, form: F) -> Edit:
        write, typed = form.wanted(), form.cleaned_data
        intent = await sync_to_async(intent_of)(
            self.request,
            self.cluster,
            self.key_of(form),
            action=write.action,
            reason=typed["reason"],
            once=typed["once"],
        )
        client = self.cluster.writer_for(self.user)
        return await write_lease(client, write, intent=intent, guard=form.guard, clock=clock.now)

    async def written(self, row: Edit) -> HttpResponse:
        """Lead to what became of it."""
        return redirect("lease_outcome", row.cluster, row.namespace, row.name, row.pk)

    async def refused(self, form: F, error: ApiError) -> HttpResponse:
        if isinstance(error, Conflict):
            text = f"The Lease changed during each of {MAX_RETRIES + 1} tries. Try again."
        else:
            text = form.place(error)
        status = STATUS_OF_ERROR.get(error.status.code, 502)
        return await self.draw(form, error=text, status=status)

    async def draw(
        self,
        form: F,
        *,
        verdict: DryRun | None = None,
        status: int = 200,
        error: str = "",
        refused: str = "",
        quiet: bool = False,
        **more: Any,
    ) -> HttpResponse:
        """`error`: why nothing was written; `refused`: why the cluster would not write it.

        `quiet`: show no errors, because the person still types.
        """
        access = await self.access(form)

        def drawn() -> HttpResponse:
            context = self.context(form, verdict, quiet=quiet) | more
            context |= {"form": form, "quiet": quiet, "access": access}
            context |= {"error": error, "refused": refused}
            return render(self.request, self.template, context, status=status)

        return await sync_to_async(drawn)()


class LeaseActionPage(ActionPage[F]):
    """One request for a form of a Lease that exists."""

    def __init__(
        self, request: HttpRequest, cluster: WatchedCluster, user: User, namespace: str, name: str
    ) -> None:
        super().__init__(request, cluster, user)
        self.key = ObjectName(namespace, name)
        tracked = cluster.store.get(self.key)
        self.is_gone = tracked is None
        self.tracked = cast("Tracked", tracked)

    async def answer(self) -> HttpResponseBase:
        if not self.is_gone or self.request.method == "POST":
            return await super().answer()
        new = {"namespace": self.key.namespace, "name": self.key.name}
        return await self._draw_gone(lambda: {"create": urlencode(new)}, status=404)

    def initial(self) -> dict[str, Any]:
        return {"seen_term": term_of(self.tracked.lease)}

    def made(
        self, data: QueryDict | None = None, *, saving: bool = False, current: Lease | None = None
    ) -> F:
        return super().made(data, saving=saving, current=current or self.tracked.lease)

    def key_of(self, form: F) -> ObjectName:
        return self.key

    async def access(self, form: F) -> WriteAccess | None:
        return await may_write(self.cluster, self.user, self.key.namespace, self.verb)

    def what_happens(self, form: F) -> WhatHappens | None:
        raise NotImplementedError

    def context(self, form: F, verdict: DryRun | None, *, quiet: bool) -> dict[str, Any]:
        return {
            "lease": self.tracked,
            "row": row_view(self.cluster.name, self.tracked, self.as_of),
            "read_at": self.as_of,
            "verdict": None if verdict is None else verdict_view(verdict),
            "happens": None if quiet else self.what_happens(form),
        }

    async def moved(self, form: F, moved: Moved) -> HttpResponse:
        """Show both sides; the next submit is for the Lease as it is now."""
        found = await sync_to_async(form.collisions)(moved.current, moved.lease)
        conflict = {
            "collisions": found,
            "another_lease": is_of_another_lease(form.term, moved.lease),
            "another_term": term_of(moved.lease) != form.term,
            "writers": writers_of(found, moved.current),
        }
        known = self.cluster.store.get(self.key) or self.tracked
        self.tracked = as_read(self.cluster.name, known, moved.lease, self.now, as_of=self.as_of)
        again = "the Lease was deleted and made again, and " if conflict["another_lease"] else ""
        conflict["by_now"] = f"{again}{by_now(self.tracked, self.now)}"
        rebased = await sync_to_async(form.rebased)(moved.current, moved.lease)
        return await self.draw(self.made(rebased), conflict=conflict, status=409)

    async def refused(self, form: F, error: ApiError) -> HttpResponse:
        return await (self.gone() if isinstance(error, NotFound) else super().refused(form, error))

    async def gone(self) -> HttpResponse:
        last = None if self.is_gone else self.tracked.lease
        form = self.form_class(self.request.POST, current=last, **self.given())

        def offered() -> dict[str, Any]:
            new = form.as_new()
            if new is not None:
                new = {"namespace": self.key.namespace, "name": self.key.name} | new
            return {"typed": form.typed(), "new": new}

        return await self._draw_gone(offered, status=409)

    async def _draw_gone(
        self, offered: Callable[[], dict[str, Any]], *, status: int
    ) -> HttpResponse:
        """Say when it was deleted. Raises Http404 for a name that nobody has heard of."""

        def drawn() -> HttpResponse:
            _, changes = changes_of(self.cluster.name, self.key, 1)
            if not changes and status == 404:
                text = f"There is no Lease {self.key} in {self.cluster.name}, and history knows "
                raise Http404(f"{text}none of this name.")
            context = {
                "key": self.key,
                "url": lease_url(self.cluster.name, self.key),
                "last": change_line(changes[0], self.now) if changes else None,
            }
            return render(self.request, "forms/gone.html", context | offered(), status=status)

        return await sync_to_async(drawn)()


def form_view(page: type[ActionPage[Any]]) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """The view of an action: GET draws; POST asks for a dry run; POST with `confirm` writes."""

    @require_http_methods(["GET", "HEAD", "POST"])
    async def view(request: HttpRequest, cluster: str, **names: str) -> HttpResponseBase:
        refusal = await sync_to_async(check_editor)(request)
        if refusal is not None:
            return refusal
        watched = find_cluster(cluster)
        check_writable(watched)
        return await page(request, watched, cast("User", await request.auser()), **names).answer()

    return view
