"""The changes that history stores, and how two observations of a Lease become changes.

docs/words.md defines the words. Holder, acquireTime and uid decide what a write did.
leaseTransitions is only evidence, because many writers miscount (client-go leaderelection.go,
tryAcquireOrRenew and release).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from leases.domain.cause.incident import Cause
from leases.domain.changes.write_time import Observation, renewal_moved, written_at
from leases.domain.kind import Kind
from leases.domain.lease import MAX_INT32, Lease, LeaseSpec
from leases.domain.phase import KnownLease, Phase, runs_out_at
from leases.domain.reconfigured_fields import reconfigured_fields


class ChangeType(StrEnum):
    """What happened. The value is the word in JSON, CSS, URLs and on the screen."""

    CREATED = "created"
    ACQUIRED = "acquired"
    RELEASED = "released"
    TAKEN_OVER = "taken_over"
    REPLACED = "replaced"
    EXPIRED = "expired"
    RECOVERED = "recovered"
    RESTARTED = "restarted"
    RECONFIGURED = "reconfigured"
    DELETED = "deleted"


HOLDER_CHANGES = (ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED)
# client-go adds one to leaseTransitions when somebody acquires, and at no other time.
COUNTED_ONCE = frozenset({*HOLDER_CHANGES, ChangeType.RESTARTED})
_END_A_GAP = COUNTED_ONCE | {ChangeType.RECOVERED}
# Each happens once to a Lease, whichever write shows it.
ONCE = frozenset({ChangeType.CREATED, ChangeType.DELETED})


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change of a Lease. Field names are the contract of the JSON and CSV exports."""

    cluster: str
    namespace: str
    name: str
    uid: str
    kind: Kind
    change: ChangeType
    at: datetime  # when it happened; if inferred, the best estimate
    # Our clock when we learned of it; ends the time window of an inferred change.
    observed_at: datetime
    holder: str | None = None
    previous_holder: str | None = None
    resource_version: str = ""  # of the write; empty if no write caused it
    transitions: int | None = None
    missed: int = 0
    inferred: bool = False
    inferred_since: datetime | None = None
    gap_seconds: float | None = None
    fields: tuple[str, ...] = ()
    writer: str | None = None  # the field manager that moved the field, where the Lease names it
    cause: Cause | None = None  # known later, with the id of the incident that it belongs to
    incident: str | None = None
    # When the last renewal was observed, of `expired`, and of `created` (None: nobody ever held or
    # renewed it); not exported.
    renewed_at: datetime | None = None
    renewal: str = ""  # the renewal fields of the Lease, for the identity; not exported
    stored_identity: str = ""  # as history has it, which keeps no renewal fields; not exported


def appeared(
    cluster: str,
    lease: Lease,
    *,
    holder: str | None,
    kind: Kind,
    seen: Observation,
    at: datetime,
    gap_since: datetime | None,
    renewed_at: datetime | None = None,
) -> Change:
    """Make `created`. `gap_since`: when the earlier Lease of this name was last validly held."""
    if holder is None or seen.inferred:
        gap_since = None
    change = _make_change(
        ChangeType.CREATED, cluster, lease, kind, seen, at, holder=holder, gap_since=gap_since
    )
    return change if renewed_at is None else replace(change, renewed_at=renewed_at)


def vanished(
    cluster: str, before: KnownLease, last: Lease, *, seen: Observation, at: datetime
) -> Change:
    """Make `deleted`; `last` is the Lease in the DELETED event, or the known one."""
    kind, holder = before.kind, before.holder
    return _make_change(ChangeType.DELETED, cluster, last, kind, seen, at, previous=holder)


def ran_out(
    cluster: str, before: KnownLease, *, at: datetime, now: datetime, unseen_since: datetime | None
) -> Change:
    """Make `expired`. `unseen_since` is set if the cluster was not observed at that time."""
    kind, lease, holder = before.kind, before.lease, before.holder
    seen = Observation(now=now, since=unseen_since, inferred=unseen_since is not None)
    change = _make_change(
        ChangeType.EXPIRED, cluster, lease, kind, seen, at, holder=holder, previous=holder
    )
    renewal = f"{change.renewal} {before.rewritten}" if before.rewritten else change.renewal
    return replace(change, resource_version="", renewed_at=before.observed_at, renewal=renewal)


def compare(
    cluster: str,
    before: KnownLease,
    after: Lease,
    *,
    holder: str | None,
    kind: Kind,
    seen: Observation,
) -> tuple[Change, ...]:
    """Return the changes between the known state and a later observation of the same uid.

    `holder` and `kind` are the ones that count now. The caller has emitted any `expired` that was
    due before; if `seen.inferred`, none is made up.
    """
    at, sure = written_at(before, after, seen)
    fields = reconfigured_fields(before.lease, after)
    types = _types(before, after, holder, at, reconfigured=bool(fields))
    return tuple(
        _make_change(
            change,
            cluster,
            after,
            kind,
            seen,
            at,
            holder=holder,
            previous=before.holder,
            missed=0 if index else _missed(change, before.lease, after),
            gap_since=before.gap_since if change in _END_A_GAP and sure else None,
            fields=fields if change is ChangeType.RECONFIGURED else (),
        )
        for index, change in enumerate(types)
    )


def _types(
    before: KnownLease, after: Lease, holder: str | None, at: datetime, *, reconfigured: bool
) -> list[ChangeType]:
    if holder != before.holder:
        return [_of_holder(before, holder, at)]
    types = []
    if holder is not None:
        if _acquired_anew(before, after):
            types.append(ChangeType.RESTARTED)
        elif before.phase is Phase.EXPIRED and renewal_moved(before.lease, after):
            types.append(ChangeType.RECOVERED)
    renewed = after.spec.renew_time != before.lease.spec.renew_time
    first_renewal = renewed and not before.settled and holder is not None
    if reconfigured and not first_renewal:
        types.append(ChangeType.RECONFIGURED)
    return types


def _of_holder(before: KnownLease, holder: str | None, at: datetime) -> ChangeType:
    if holder is None:
        return ChangeType.RELEASED
    if before.holder is None:
        return ChangeType.ACQUIRED
    runs_out = runs_out_at(before.lease, before.observed_at)
    valid = runs_out is None or at < runs_out
    return ChangeType.REPLACED if valid else ChangeType.TAKEN_OVER


def _acquired_anew(before: KnownLease, after: Lease) -> bool:
    """Whether the same holder acquired again, and not only added acquireTime when it renewed."""
    acquired, earlier = after.spec.acquire_time, before.lease.spec.acquire_time
    if acquired is None or acquired == earlier:
        return False
    return earlier is not None or before.settled


def _missed(change: ChangeType, before: Lease, after: Lease) -> int:
    old, new = before.spec.lease_transitions, after.spec.lease_transitions
    if old is None or new is None:
        return 0
    return min(max(0, new - old - (change in COUNTED_ONCE)), MAX_INT32)


def _make_change(
    change: ChangeType,
    cluster: str,
    lease: Lease,
    kind: Kind,
    seen: Observation,
    at: datetime,
    *,
    holder: str | None = None,
    previous: str | None = None,
    missed: int = 0,
    gap_since: datetime | None = None,
    fields: tuple[str, ...] = (),
) -> Change:
    meta = lease.metadata
    return Change(
        cluster=cluster,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        kind=kind,
        change=change,
        at=at,
        observed_at=seen.now,
        holder=holder,
        previous_holder=previous,
        resource_version=meta.resource_version,
        transitions=lease.spec.lease_transitions,
        missed=missed,
        inferred=seen.inferred,
        inferred_since=seen.since if seen.inferred else None,
        gap_seconds=None if gap_since is None else max(0.0, (at - gap_since).total_seconds()),
        fields=fields,
        renewal="" if change in ONCE else _renewal(lease.spec),
    )


def _renewal(spec: LeaseSpec) -> str:
    """Return the fields that move observed_at: equal for every observer of this renewal."""
    times = (time.isoformat() if time else "" for time in (spec.acquire_time, spec.renew_time))
    return " ".join([*times, str(spec.lease_duration_seconds), spec.holder_identity or ""])
