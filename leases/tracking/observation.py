"""Compare one Lease with its next observation: the new state, and the changes.

Pure: the caller stores the result; the rules are those of the domain.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from leases.domain.change import (
    Change,
    ChangeType,
    Observation,
    appeared,
    appeared_at,
    compare,
    duration_edited,
    ran_out,
    renewal_moved,
    renewed_at,
    written_at,
)
from leases.domain.figures import Span
from leases.domain.kind import Kind, Verdict, after_next_holder, classify, keep_settled
from leases.domain.lease import Lease, number_of
from leases.domain.phase import (
    EMPTY,
    Phase,
    counted_holder,
    next_turn,
    phase_of,
    runs_out_at,
    with_sample,
)
from leases.domain.steady_clock import plus
from leases.domain.terms import Gap, LeaseGap
from leases.tracking.tracked_lease import MAX_LAPSES, Lasting, Tracked, compact, once_renewed

_replace = msgspec.structs.replace
ODD = timedelta(seconds=10)  # by which an interval of the writer's clock may exceed ours
# The first renewals all measure the skew, then every fifth: a clock drifts slowly.
ENOUGH_LAGS = 5


def first_sight(
    cluster: str,
    lease: Lease,
    seen: Observation,
    *,
    died_at: datetime | None = None,
    gap_since: datetime | None = None,
    verdict: Verdict | None = None,
    earlier: Verdict | None = None,
) -> tuple[Tracked, Change]:
    """Return the state of a new Lease and its `created`. `verdict` is the kind that an admin set,
    `earlier` what earlier Leases of its name settled; the last of them died at `died_at`.
    """
    lease = compact(lease)
    named = bool(lease.holder or lease.spec.acquire_time or lease.spec.lease_transitions)
    kind, reason = verdict or _by_rules(lease, None, earlier)
    holder = counted_holder(lease, kind, named=named)
    observed_at = renewed_at(None, lease, seen)
    at = _came_at(lease, holder, observed_at, seen)
    at = at if died_at is None else max(at, died_at)
    change = appeared(
        cluster, lease, holder=holder, kind=kind, seen=_not_before_birth(lease, seen), at=at,
        gap_since=gap_since, renewed_at=observed_at if named or lease.spec.renew_time else None,
    )  # fmt: skip
    lasting = Lasting(
        key=lease.key,
        lease=lease,
        kind=kind,
        kind_reason=reason,
        phase=Phase.HELD,
        phase_since=at,
        held_since=None if holder is None else at,
        gap_since=(gap_since or at) if holder is None and seen.live else None,
        settled=not seen.live and not lease.spec.strategy,
        named=named,
        overridden=verdict is not None,
    )
    tracked = Tracked(lasting, lease.spec.renew_time, observed_at, estimated=not seen.live)
    phase = phase_of(tracked, observed_at)
    return tracked if phase is Phase.HELD else tracked.replace(phase=phase), change


def _came_at(
    lease: Lease, holder: str | None, observed_at: datetime, seen: Observation
) -> datetime:
    """When a new Lease's holder came: after it was created, and no later than its last renewal if
    it has expired since."""
    at = appeared_at(lease, holder, seen)
    runs_out = None if holder is None else runs_out_at(lease, observed_at)
    if runs_out is None or runs_out > seen.now:
        return at
    came, created = min(at, observed_at), lease.metadata.creation_timestamp
    return came if created is None or created > at else max(came, created)


def _not_before_birth(lease: Lease, seen: Observation) -> Observation:
    """A change that nobody observed happened after the Lease was created."""
    created = lease.metadata.creation_timestamp
    if seen.live or created is None or (seen.since is not None and seen.since >= created):
        return seen
    return _replace(seen, since=created)


def next_sight(
    cluster: str, known: Tracked, lease: Lease, seen: Observation
) -> tuple[Tracked, tuple[Change, ...]]:
    """Apply a later write of a known Lease. The caller has emitted any `expired` due before it."""
    lease = compact(lease, known.lasting.lease)
    kind, reason = _judge(known, lease)
    named = known.lasting.named or lease.holder is not None
    holder = counted_holder(lease, kind, named=named)
    changes = compare(cluster, known, lease, holder=holder, kind=kind, seen=seen)
    moved = renewal_moved(known.lease, lease)
    came = holder != known.holder
    at, _ = written_at(known, lease, seen)
    fields = _learnt(known, lease, seen, came=came)
    fields |= {"lease": lease, "kind": kind, "kind_reason": reason, "named": named}
    if moved or came:
        fields |= {
            "rewritten": _rewritten(known.lease, lease),
            "renewed_at": _renewed_before(known, lease),
            "renewed_by_hand": seen.by_hand,
            "gap_since": None if holder is not None else known.gap_since or (at if came else None),
        }
    if moved:
        fields |= {"observed_at": renewed_at(known, lease, seen), "estimated": not seen.live}
    if moved or came or kind is not known.kind:
        fields["abandoned"] = False  # the deadline judges it anew
    if came:
        released, duration = holder is None, known.lasting.lease.spec.lease_duration_seconds
        fields["released_by"] = known.holder if released else None
        fields["lasted"] = duration if released else None
    if came or any(change.change is ChangeType.RESTARTED for change in changes):
        fields |= {"held_since": None if holder is None else at, "lapses": ()}
    elif recovered := next((one for one in changes if one.change is ChangeType.RECOVERED), None):
        fields["lapses"] = _lapses(known, recovered)
    tracked = known.replace(**fields)
    return _in_phase(known, tracked, at, seen, judge=moved or came), changes


def _lapses(known: Tracked, recovered: Change) -> tuple[Span, ...]:
    lost = timedelta(seconds=recovered.gap_seconds or 0.0)
    if not lost:
        return known.lapses
    return (*known.lapses, (plus(recovered.at, -lost), recovered.at))[-MAX_LAPSES:]


def renewed(
    known: Tracked,
    claimed: datetime,
    at: datetime,
    *,
    interval: timedelta,
    version: int,
    live: bool,
    measured: bool = True,
) -> Tracked:
    """Apply a renewal that changes nothing else, which is nearly every event.

    Only where the row's RenewalOutlook allows it. `interval` is by the holder's clock; `live`: it
    was observed when it happened; `measured`: somebody watched the whole interval.
    """
    seen = known.renewals_seen + 1
    lags = known.lags
    if live and (seen < ENOUGH_LAGS or not seen % ENOUGH_LAGS):
        lags = with_sample(lags, (at - claimed).total_seconds())
    intervals = known.intervals
    if measured:
        intervals = with_sample(intervals, interval.total_seconds())
    lasting = known.lasting if known.version else once_renewed(known.lasting)
    return Tracked(lasting, claimed, at, not live, seen, intervals, lags, version)


def listed_renewed(known: Tracked, lease: Lease, seen: Observation) -> Tracked | None:
    """Apply the last of several renewals, from a list. None: more than renewTime changed."""
    claimed, version = lease.spec.renew_time, number_of(lease.metadata.resource_version)
    if claimed is None or known.renew_time is None or claimed <= known.renew_time:
        return None
    if not version or not only_renewed(known.lasting.lease, lease):
        return None
    at = renewed_at(known, lease, seen)
    lasting = known.lasting if known.version else once_renewed(known.lasting)
    return _replace(
        known, lasting=lasting, renew_time=claimed, observed_at=at, estimated=True, version=version
    )


def only_renewed(before: Lease, after: Lease) -> bool:
    """Return whether nothing but renewTime differs, of all fields that a rule or a page reads."""
    was, spec = before.spec, after.spec
    old, new = before.metadata, after.metadata
    return (
        old.uid == new.uid
        and was.holder_identity == spec.holder_identity
        and was.lease_duration_seconds == spec.lease_duration_seconds
        and was.acquire_time == spec.acquire_time
        and was.lease_transitions == spec.lease_transitions
        and was.strategy == spec.strategy
        and was.preferred_holder == spec.preferred_holder
        and old.owner_references == new.owner_references
        and old.labels == new.labels
        and old.annotations == new.annotations
        and old.deletion_timestamp == new.deletion_timestamp
    )


def turned(
    cluster: str, known: Tracked, now: datetime, *, by: datetime, unseen_since: datetime | None
) -> tuple[Tracked, Change | None]:
    """Return a Lease after the phase change due at `by`, and `expired` if it expired.

    `unseen_since`: set if it expired while we did not observe the cluster.
    """
    runs_out = known.runs_out_at
    if runs_out is None or runs_out > by:
        since = next_turn(known) or by
        return known.replace(phase=Phase.LATE, phase_since=since), None
    # Who counts as the holder only since a change of kind ran out no earlier than that.
    at = runs_out if known.held_since is None else max(runs_out, known.held_since)
    change = ran_out(cluster, known, at=at, now=now, unseen_since=unseen_since)
    tracked = known.replace(phase=Phase.EXPIRED, phase_since=at, gap_since=at)
    return tracked, change


def _judge(known: Tracked, lease: Lease) -> tuple[Kind, str]:
    """Return the kind; judge it again at the first renewal, or if its evidence changed."""
    renewed, named = known.renewals_seen and known.settled, known.lasting.named
    if (
        known.lasting.overridden
        or (lease.holder is None and named)
        or (renewed and _kind_evidence(known.lease) == _kind_evidence(lease))
    ):
        return known.kind, known.kind_reason
    verdict = _by_rules(lease, known.kind if named else None, (known.kind, known.kind_reason))
    return after_next_holder(verdict, known.lease.holder or known.lasting.released_by, lease.holder)


def _by_rules(lease: Lease, previous: Kind | None, known: Verdict | None) -> Verdict:
    verdict = classify(lease, previous)
    return verdict if known is None else keep_settled(verdict, known)


def _rewritten(before: Lease, after: Lease) -> str:
    """A higher renewTime identifies its renewal. An edit may leave it: then the version does."""
    earlier, claimed = before.spec.renew_time, after.spec.renew_time
    goes_on = claimed is not None and (earlier is None or claimed > earlier)
    return "" if goes_on else after.resource_version


def _renewed_before(known: Tracked, lease: Lease) -> datetime | None:
    return known.renewed_at if duration_edited(known.lease, lease) else None


def _kind_evidence(lease: Lease) -> tuple[object, ...]:
    meta, spec = lease.metadata, lease.spec
    numbers = (spec.lease_duration_seconds, spec.lease_transitions)
    unset = [value is None for value in (spec.acquire_time, spec.renew_time, *numbers)]
    return meta.labels, meta.annotations, meta.owner_references, spec.strategy, lease.holder, unset


def _learnt(known: Tracked, lease: Lease, seen: Observation, *, came: bool) -> dict[str, Any]:
    """Return what a write tells of its holder's habits, as fields of Tracked."""
    if came:
        return {"settled": False, "lags": EMPTY}
    earlier, claimed = known.lease.spec.renew_time, lease.spec.renew_time
    if claimed is None or claimed == earlier or lease.holder != known.lease.holder:
        return {}
    if seen.by_hand:
        return {}
    acquired = known.lease.spec.acquire_time
    if acquired is not None and acquired != lease.spec.acquire_time:
        return {"settled": False}
    learnt: dict[str, Any] = {"settled": True}
    if seen.live:
        learnt["lags"] = with_sample(known.lags, (seen.now - claimed).total_seconds())
    if seen.listed or earlier is None:
        return learnt
    learnt["renewals_seen"] = known.renewals_seen + 1
    if seen.inferred or known.observed_at < seen.watched_since:  # nobody watched all of it
        return learnt
    interval = claimed - earlier
    set_meanwhile = seen.live and interval - (seen.now - known.observed_at) > ODD
    if claimed > earlier and not set_meanwhile and not known.lasting.renewed_by_hand:
        learnt["intervals"] = with_sample(known.intervals, interval.total_seconds())
    return learnt


def _in_phase(
    known: Tracked, tracked: Tracked, at: datetime, seen: Observation, *, judge: bool
) -> Tracked:
    """Set the phase as of now; with `judge`, as of the last renewal: the clock turns it on."""
    if not (seen.live or judge):
        return tracked
    phase = phase_of(tracked, tracked.observed_at if judge else seen.now)
    if phase is known.phase:
        return tracked
    return tracked.replace(phase=phase, phase_since=at)


def open_gap(tracked: Tracked) -> LeaseGap | None:
    """Return the gap that goes on, as history has it."""
    lasting = tracked.lasting
    vacant_since = lasting.phase_since if lasting.phase is Phase.VACANT else None
    since = tracked.gap_since or vacant_since
    if since is None:
        return None
    held = lasting.released_by is not None or lasting.named
    gap = Gap(
        since=since,
        until=None,
        after=ChangeType.EXPIRED if vacant_since is None else ChangeType.RELEASED,
        holder=lasting.released_by if tracked.holder is None else tracked.holder,
        ended_by=None,
        renewed_at=tracked.renewed_at if held or tracked.renew_time else None,
        vacant_since=vacant_since,
    )
    return LeaseGap(tracked.key, gap, lasting.held_since, bool(lasting.may_be_vacant))
