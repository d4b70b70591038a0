"""Delete one Lease: show what it brings about, confirm by its name, write.

Source: client-go's leaderelection.go. A holder that finds no Lease creates it at its next renewal;
one that finds another holder's Lease stops at its renew deadline, two thirds of the duration by
default. The kubelet's lease controller creates a missing Lease at its next renewal.
"""

from datetime import datetime
from typing import cast

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import check_editor, check_writable, find_cluster
from dashboard.forms.delete_form import DeleteLeaseForm
from dashboard.parts.audit_line import intent_of
from dashboard.parts.formatting import age, counted, seconds
from dashboard.parts.lease_row import row_view
from dashboard.parts.names import holder_view
from dashboard.parts.write_access import may_write
from dashboard.watched_cluster import WatchedCluster
from leases.actions.audit import AlreadySent, sent_before
from leases.actions.write_lease import DELETE, TermEnded, delete_lease, refusal_of
from leases.domain.edit import term_of
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import DEADLINE_SHARE, Phase
from leases.models import Edit
from leases.tracking.tracked_lease import Tracked
from leases.wire.status import ApiError, Conflict, NotFound

RETRY_SECONDS = 2.0  # client-go's default retry period
KUBELET_SECONDS = 10.0  # the kubelet renews every quarter of 40 s
ALIVE = (Phase.HELD, Phase.LATE, Phase.UNTIMED)


def headline(tracked: Tracked, now: datetime) -> str:
    """What matters most."""
    silent = (now - tracked.observed_at).total_seconds()
    if tracked.phase in (Phase.HELD, Phase.LATE):
        again = "make it anew" if tracked.kind is not Kind.LOCK else "go on as if it held it"
        return f"Renewed {age(silent)} ago: the holder will probably {again}"
    if tracked.phase is Phase.UNTIMED:
        return f"{_holder(tracked)} holds it without an end and is not told"
    if tracked.phase is Phase.VACANT:
        return "Nobody holds it"
    return f"Silent for {age(silent)}: the holder is probably gone"


def meaning_of(tracked: Tracked) -> tuple[str, ...]:
    return (*_who_makes_it_anew(tracked), _what_is_lost(tracked), "What Leaseboard knows stays.")


def _who_makes_it_anew(tracked: Tracked) -> tuple[str, ...]:
    alive = tracked.phase in ALIVE
    if tracked.kind is Kind.ELECTION:
        return _of_election(tracked) if alive else (_whoever(RETRY_SECONDS),)
    if tracked.kind is Kind.LOCK:
        if not alive:
            return ("Whoever wants the lock next makes it anew.",)
        said = f"{_holder(tracked)} may go on: until it is done, two may act at once."
        return ("Another one may take the lock at once.", said)
    if tracked.key.namespace == NODE_LEASES and tracked.kind is Kind.HEARTBEAT:
        beat = tracked.cadence_seconds or KUBELET_SECONDS
        return (
            f"The kubelet makes it anew within {seconds(round(beat, 1))}, if it runs.",
            "If it does not, the node is marked NotReady and its pods may be moved.",
        )
    every = tracked.cadence_seconds
    within = f" within {seconds(round(every, 1))}" if every else ""
    return (f"Whoever renews it makes it anew{within}, if it still runs.",)


def _of_election(tracked: Tracked) -> tuple[str, ...]:
    holder = _holder(tracked)
    retry = tracked.cadence_seconds or RETRY_SECONDS
    lasts = tracked.lasts_seconds
    stops = f"If another one is first, {holder} stops at its renew deadline"
    if lasts is None:
        return (_whoever(retry), f"{stops}. Until then two may act at once.")
    deadline = lasts * DEADLINE_SHARE
    both = f"Until then two may act at once, for up to {seconds(round(deadline + retry, 1))}."
    by_default = f"{seconds(round(deadline, 1))} by client-go's default"
    return (f"{_whoever(retry)} Often {holder} is first.", f"{stops}, {by_default}. {both}")


def _whoever(within: float) -> str:
    return f"Whoever notices first makes it anew, usually within {seconds(round(within, 1))}."


def _what_is_lost(tracked: Tracked) -> str:
    lease = tracked.lasting.lease
    meta, transitions = lease.metadata, lease.spec.lease_transitions
    lost = [
        counted(len(pairs), one)
        for pairs, one in ((meta.labels, "label"), (meta.annotations, "annotation"))
        if pairs
    ]
    said = [f"Transitions restart at 0 (now {transitions:,})."] if transitions else []
    said += [f"Lost with it: {' and '.join(lost)}."] if lost else []
    return " ".join(said) or "It has no transitions, labels or annotations to lose."


def _holder(tracked: Tracked) -> str:
    holder = holder_view(tracked.holder)
    return holder.short if holder else "nobody"


STATUS_OF_ERROR = {0: 502, 401: 502, 403: 502, 404: 409, 409: 409, 422: 422}
GONE = "It is gone already: somebody else deleted it. Nothing was written."


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_delete(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the form with the server's verdict; POST deletes."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = find_cluster(cluster)
    check_writable(watched)
    user = cast("User", await request.auser())
    page = DeletePage(request, watched, user, ObjectName(namespace, name))
    return await page.submit() if request.method == "POST" else await page.open()


class DeletePage:
    """One request for the form."""

    def __init__(
        self, request: HttpRequest, cluster: WatchedCluster, user: User, key: ObjectName
    ) -> None:
        request.cluster = cluster  # type: ignore[attr-defined]
        self.request = request
        self.cluster = cluster
        self.user = user
        self.key = key
        self.now = clock.now()

    @property
    def tracked(self) -> Tracked:
        tracked = self.cluster.store.get(self.key)
        if tracked is None:
            text = f"There is no Lease {self.key} in {self.cluster.name}. It may have been deleted."
            raise Http404(text)
        return tracked

    async def open(self) -> HttpResponse:
        lease = self.tracked.lease
        form = DeleteLeaseForm(initial={"seen_term": term_of(lease)}, key=self.key)
        try:
            refused = await refusal_of(self.cluster.writer_for(self.user), lease)
        except ApiError as error:
            refused = error
        return await self.draw(form, verdict=_verdict(refused))

    async def submit(self) -> HttpResponseBase:
        form = DeleteLeaseForm(self.request.POST, key=self.key)
        once = self.request.POST.get("once", "")
        first = await sent_before(once, user=self.user, cluster=self.cluster.name)
        if first is None and not form.is_valid():
            return await self.draw(form, status=422)
        try:
            row = first or await self._write(form)
        except AlreadySent as sent:
            row = sent.row
        except TermEnded as ended:
            return await self._draw_conflict(form, ended.current)
        except NotFound:
            return await self.draw(form, error=GONE, status=409)
        except ApiError as error:
            conflict = "It changed during each of several tries. Nothing was written; try again."
            text = conflict if isinstance(error, Conflict) else form.place(error)
            status = STATUS_OF_ERROR.get(error.status.code, 502)
            return await self.draw(form, error=text, status=status)
        return redirect("lease_outcome", row.cluster, row.namespace, row.name, row.pk)

    async def _write(self, form: DeleteLeaseForm) -> Edit:
        intent = await sync_to_async(intent_of)(
            self.request,
            self.cluster,
            self.key,
            action=DELETE,
            reason=form.cleaned_data["reason"],
            once=form.cleaned_data["once"],
        )
        return await delete_lease(
            self.cluster.writer_for(self.user),
            self.key,
            seen_term=form.cleaned_data["seen_term"],
            intent=intent,
            clock=clock.now,
        )

    async def _draw_conflict(self, form: DeleteLeaseForm, current: Lease) -> HttpResponse:
        """Say who holds it now; the next submit is for the new term."""
        holder = holder_view(current.holder)
        moved: dict[str, object] = {
            "holder": holder.short if holder else "nobody",
            "since": current.spec.acquire_time or current.metadata.creation_timestamp,
        }
        return await self.draw(form.rebased(current), moved=moved, status=409)

    async def draw(
        self,
        form: DeleteLeaseForm,
        *,
        verdict: str | None = None,
        moved: dict[str, object] | None = None,
        error: str = "",
        status: int = 200,
    ) -> HttpResponse:
        known = self.cluster.store.get(self.key)
        as_of = self.cluster.as_of(self.now)
        context = {
            "access": await may_write(self.cluster, self.user, self.key.namespace, "delete"),
            "form": form,
            "key": self.key,
            "row": row_view(self.cluster.name, known, as_of) if known else None,
            "duration": known.lasting.lease.spec.lease_duration_seconds if known else None,
            "read_at": as_of,
            "headline": headline(known, as_of) if known else "",
            "means": meaning_of(known) if known else (),
            "verdict": verdict,
            "moved": moved,
            "error": error,
        }
        return await sync_to_async(render)(
            self.request, "delete/lease.html", context, status=status
        )


def _verdict(refused: ApiError | None) -> str:
    """What the dry run came to; "" when the server would delete the Lease."""
    if refused is None:
        return ""
    return f"The API server would refuse this: {refused}"
