"""One Lease and the next sight of it: what is known from now on, and the changes it tells.

Values in, values out: the store keeps what comes back, the rules are the domain's.
"""

from __future__ import annotations

from datetime import datetime
from math import inf

import msgspec

from leases.domain.cadence import EMPTY, with_sample
from leases.domain.change import Change, ChangeType, appeared, compare, ran_out
from leases.domain.kind import Kind, Verdict, classify
from leases.domain.lease import Lease
from leases.domain.phase import (
    ENOUGH_RENEWALS,
    Phase,
    counted_holder,
    next_turn,
    phase_of,
    runs_out_at,
)
from leases.domain.sighting import Sighting, appeared_at, renewal_moved, renewed_at, written_at
from leases.tracking.compact import compact
from leases.tracking.tracked import Tracked

_replace = msgspec.structs.replace
# With CADENCES = 2: 2 c - 2 x 0.75 c is less than the 0.75 c that passed meanwhile.
STEADY_SHARE = 0.75


def first_sight(
    cluster: str,
    lease: Lease,
    seen: Sighting,
    *,
    gap_since: datetime | None = None,
    verdict: Verdict | None = None,
) -> tuple[Tracked, Change]:
    """A Lease not known before. `gap_since`: when its namesake before it was last validly held;
    `verdict`: an admin's, who knows better than the rules."""
    named = bool(lease.holder or lease.spec.acquire_time or lease.spec.lease_transitions)
    kind, reason = verdict or classify(lease, None)
    holder = counted_holder(lease, kind, named=named)
    observed_at = renewed_at(None, lease, seen)
    at = appeared_at(lease, holder, seen)
    runs_out = None if holder is None else runs_out_at(lease, observed_at)
    if runs_out is not None and runs_out <= seen.now:
        at = min(at, observed_at)  # it came before it ran out
    seen = _not_before_birth(lease, seen)
    change = appeared(
        cluster, lease, holder=holder, kind=kind, seen=seen, at=at, gap_since=gap_since
    )
    tracked = Tracked(
        lease=lease,
        kind=kind,
        kind_reason=reason,
        phase=phase_of(
            lease, observed_at=observed_at, cadence_seconds=None, renewals_seen=0,
            kind=kind, now=observed_at, named=named,
        ),
        phase_since=at,
        observed_at=observed_at,
        estimated=not seen.live,
        held_since=None if holder is None else at,
        gap_since=(gap_since or at) if holder is None and seen.live else None,
        settled=not seen.live and not lease.spec.strategy,
        named=named,
        overruled=verdict is not None,
    )  # fmt: skip
    return tracked, change


def _not_before_birth(lease: Lease, seen: Sighting) -> Sighting:
    """What was not seen happened after the Lease was created."""
    created = lease.metadata.creation_timestamp
    if seen.live or created is None or (seen.since is not None and seen.since >= created):
        return seen
    return _replace(seen, since=created)


def next_sight(
    cluster: str, known: Tracked, lease: Lease, seen: Sighting
) -> tuple[Tracked, tuple[Change, ...]]:
    """A later write of a Lease that is known; any run-out due before it has been told already."""
    lease = compact(lease)
    kind, reason = _judge(known, lease)
    named = known.named or lease.holder is not None
    holder = counted_holder(lease, kind, named=named)
    changes = compare(cluster, known, lease, holder=holder, kind=kind, seen=seen)
    moved = renewal_moved(known.lease, lease)
    observed_at = renewed_at(known, lease, seen) if moved else known.observed_at
    came = holder != known.holder
    tracked = _replace(
        _learn(known, lease, seen, came=came),
        lease=lease,
        kind=kind,
        kind_reason=reason,
        observed_at=observed_at,
        estimated=not seen.live if moved else known.estimated,
        rewritten=_rewritten(known.lease, lease) if moved else known.rewritten,
        named=named,
    )
    at, _ = written_at(known, lease, seen)
    if came or any(change.change is ChangeType.RESTARTED for change in changes):
        tracked = _replace(tracked, held_since=None if holder is None else at)
    if moved or came:
        gap_since = None if holder is not None else known.gap_since or (at if came else None)
        tracked = _replace(tracked, gap_since=gap_since)
    return _in_phase(known, tracked, at, seen, judge=moved or came), changes


def renewed(
    known: Tracked,
    lease: Lease,
    now: datetime,
    *,
    interval: float,
    passed: float,
    lag: float | None,
) -> Tracked | None:
    """A holder that was in time renewed, as in nearly all events; None when there is more to it.

    In seconds: `interval` by the holder's clock and `passed` by ours since the last renewal, and
    the `lag` from the one clock to the other, None when it was not seen as it happened.
    """
    lease = compact(lease)
    spec = lease.spec
    if interval <= 0.0 or not known.settled or not known.renewals_seen:
        return None
    if known.phase is Phase.HELD:
        duration = spec.lease_duration_seconds
        if duration is None or passed >= duration:
            return None
    elif known.phase is not Phase.UNTIMED:
        return None
    if not _only_renewed(known.lease, lease):
        return None
    return _replace(
        known,
        lease=_with_renewal(known.lease, lease),
        observed_at=now,
        estimated=lag is None,
        rewritten="",
        renewals_seen=known.renewals_seen + 1,
        intervals=with_sample(known.intervals, interval),
        lags=known.lags if lag is None else with_sample(known.lags, lag),
    )


def _with_renewal(before: Lease, after: Lease) -> Lease:
    """The same as `after`, made of what we have already: memory for many Leases stays in use."""
    meta = _replace(before.metadata, resource_version=after.metadata.resource_version)
    return Lease(meta, _replace(before.spec, renew_time=after.spec.renew_time))


def _only_renewed(before: Lease, after: Lease) -> bool:
    """Whether nothing but renewTime differs, of all that a rule or a page reads."""
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
    """A Lease whose phase turns `by` then, as it is afterwards, with the `expired` if it ran out.

    `unseen_since` is set when the run-out fell into a time in which we saw nothing.
    """
    runs_out = known.runs_out_at
    if runs_out is None or runs_out > by:
        since = outlook(known)[0] or by
        return _replace(known, phase=Phase.LATE, phase_since=since), None
    change = ran_out(cluster, known, at=runs_out, now=now, unseen_since=unseen_since)
    tracked = _replace(known, phase=Phase.EXPIRED, phase_since=runs_out, gap_since=runs_out)
    return tracked, change


def outlook(known: Tracked) -> tuple[datetime | None, float]:
    """When the phase turns next, and which renewals need not be asked whether that comes sooner:
    those no sooner than so many seconds after the last.

    While no interval is below a share of the present cadence, neither is the cadence; what it may
    lose, the next turn has won by the very time that passed.
    """
    cadence = known.cadence_seconds
    turn = next_turn(
        known.lease,
        observed_at=known.observed_at,
        cadence_seconds=cadence,
        renewals_seen=known.renewals_seen,
        phase=known.phase,
    )
    learned = cadence is not None and known.renewals_seen >= ENOUGH_RENEWALS
    return turn, STEADY_SHARE * cadence if learned and cadence is not None else inf


def _judge(known: Tracked, lease: Lease) -> tuple[Kind, str]:
    """The kind, judged again where what tells it has moved and at the first renewal seen."""
    if known.overruled or (lease.holder is None and known.named):
        return known.kind, known.kind_reason
    if known.renewals_seen and known.settled and _marks(known.lease) == _marks(lease):
        return known.kind, known.kind_reason
    return classify(lease, known.kind if known.named else None)


def _rewritten(before: Lease, after: Lease) -> str:
    """A renewTime that goes on tells its renewal from all others; an edit may leave it."""
    earlier, claimed = before.spec.renew_time, after.spec.renew_time
    goes_on = claimed is not None and (earlier is None or claimed > earlier)
    return "" if goes_on else after.resource_version


def _marks(lease: Lease) -> tuple[object, ...]:
    """All that tells the kind of a Lease: marks, names, and which fields of its spec are set."""
    meta, spec = lease.metadata, lease.spec
    shape = (
        spec.acquire_time is None,
        spec.renew_time is None,
        spec.lease_duration_seconds is None,
        spec.lease_transitions is None,
    )
    return (
        meta.labels,
        meta.annotations,
        meta.owner_references,
        spec.strategy,
        lease.holder,
        shape,
    )


def _learn(known: Tracked, lease: Lease, seen: Sighting, *, came: bool) -> Tracked:
    """What this sight teaches of the cadence and of the holder's clock."""
    if came:
        return _replace(known, settled=False, lags=EMPTY)
    earlier, claimed = known.lease.spec.renew_time, lease.spec.renew_time
    if claimed is None or claimed == earlier or lease.holder != known.lease.holder:
        return known
    acquired = known.lease.spec.acquire_time
    if acquired is not None and acquired != lease.spec.acquire_time:
        return _replace(known, settled=False)
    known = _replace(known, settled=True)
    if seen.live:
        lags = with_sample(known.lags, (seen.now - claimed).total_seconds())
        known = _replace(known, lags=lags)
    if seen.listed or earlier is None:
        return known
    intervals = known.intervals
    if claimed > earlier:
        intervals = with_sample(intervals, (claimed - earlier).total_seconds())
    return _replace(known, renewals_seen=known.renewals_seen + 1, intervals=intervals)


def _in_phase(
    known: Tracked, tracked: Tracked, at: datetime, seen: Sighting, *, judge: bool
) -> Tracked:
    """The phase as of the sight; if that was not live, as of its writing: the clock turns it on."""
    if not (seen.live or judge):
        return tracked
    phase = phase_of(
        tracked.lease,
        observed_at=tracked.observed_at,
        cadence_seconds=tracked.cadence_seconds,
        renewals_seen=tracked.renewals_seen,
        kind=tracked.kind,
        now=seen.now if seen.live else tracked.observed_at,
        named=tracked.named,
    )
    if phase is known.phase:
        return tracked
    return _replace(tracked, phase=phase, phase_since=at)
