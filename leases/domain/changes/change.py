"""The changes that history remembers, and how two sights of one Lease become them.

The words and their conditions are those of docs/words.md. What a write did is told by holder,
acquireTime and uid; leaseTransitions is evidence only (client-go leaderelection.go,
tryAcquireOrRenew and release, and everybody else's miscounting).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from leases.domain.changes.write_time import Observation, renewal_moved, written_at
from leases.domain.kind import Kind
from leases.domain.lease import MAX_INT32, Lease, LeaseSpec
from leases.domain.phase import Phase, runs_out_at
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


# client-go adds one to leaseTransitions when somebody acquires, and at no other time.
_COUNTED_ONCE = {
    ChangeType.ACQUIRED,
    ChangeType.TAKEN_OVER,
    ChangeType.REPLACED,
    ChangeType.RESTARTED,
}


# What a Lease has once in its life, whichever write told it.
ONCE = frozenset({ChangeType.CREATED, ChangeType.DELETED})


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing worth remembering. Field names are the contract of the JSON and CSV exports."""

    cluster: str
    namespace: str
    name: str
    uid: str
    kind: Kind
    change: ChangeType
    at: datetime  # when it happened; of an inferred one the best estimate
    observed_at: datetime  # our clock when we came to know it; ends the window of an inferred one
    holder: str | None = None
    previous_holder: str | None = None
    resource_version: str = ""  # of the write; empty when none did it
    transitions: int | None = None
    missed: int = 0
    inferred: bool = False
    inferred_since: datetime | None = None
    gap_seconds: float | None = None
    fields: tuple[str, ...] = ()
    renewed_at: datetime | None = None  # of `expired`: when the renewal was seen; not exported
    renewal: str = ""  # what the Lease said then of its holding, for the identity; not exported


class Known(Protocol):
    """What is known of a Lease before the next sight of it."""

    @property
    def lease(self) -> Lease: ...
    @property
    def holder(self) -> str | None:
        """Who counts as the holder."""

    @property
    def kind(self) -> Kind: ...
    @property
    def phase(self) -> Phase: ...
    @property
    def observed_at(self) -> datetime: ...
    @property
    def gap_since(self) -> datetime | None: ...
    @property
    def settled(self) -> bool:
        """Whether the present holder has renewed since it came."""

    @property
    def rewritten(self) -> str:
        """resourceVersion of the write that moved observed_at, if renewTime did not go on."""

    @property
    def skew_seconds(self) -> float | None: ...


def appeared(
    cluster: str,
    lease: Lease,
    *,
    holder: str | None,
    kind: Kind,
    seen: Observation,
    at: datetime,
    gap_since: datetime | None,
) -> Change:
    """`created`; `gap_since` is when the Lease of this name before it was last validly held."""
    ends_gap = holder is not None and not seen.inferred
    return _make_change(
        ChangeType.CREATED,
        cluster,
        lease,
        kind=kind,
        seen=seen,
        at=at,
        holder=holder,
        gap_since=gap_since if ends_gap else None,
    )


def vanished(
    cluster: str, before: Known, last: Lease, *, seen: Observation, at: datetime
) -> Change:
    """`deleted`; `last` is the Lease as the deletion told it, or as it was known."""
    return _make_change(
        ChangeType.DELETED,
        cluster,
        last,
        kind=before.kind,
        seen=seen,
        at=at,
        previous=before.holder,
    )


def ran_out(
    cluster: str, before: Known, *, at: datetime, now: datetime, unseen_since: datetime | None
) -> Change:
    """`expired` at `at`; `unseen_since` is set when it fell into a time in which we saw nothing."""
    change = _make_change(
        ChangeType.EXPIRED,
        cluster,
        before.lease,
        kind=before.kind,
        seen=Observation(now=now, since=unseen_since, inferred=unseen_since is not None),
        at=at,
        holder=before.holder,
        previous=before.holder,
    )
    renewal = f"{change.renewal} {before.rewritten}" if before.rewritten else change.renewal
    return msgspec.structs.replace(
        change, resource_version="", renewed_at=before.observed_at, renewal=renewal
    )


def compare(
    cluster: str, before: Known, after: Lease, *, holder: str | None, kind: Kind, seen: Observation
) -> tuple[Change, ...]:
    """What happened between what was known and a later sight of the same uid.

    `holder` and `kind` are those that count now. A run-out that was due before must have been told
    already, unless `seen.inferred`, for which none is invented.
    """
    at, sure = written_at(before, after, seen)
    types = _types(before, after, holder, at)
    missed = _missed(types[0], before.lease, after) if types else 0
    return tuple(
        _make_change(
            change,
            cluster,
            after,
            kind=kind,
            seen=seen,
            at=at,
            holder=holder,
            previous=before.holder,
            missed=missed if index == 0 else 0,
            gap_since=before.gap_since if _ends_gap(change) and sure else None,
            fields=reconfigured_fields(before.lease, after)
            if change is ChangeType.RECONFIGURED
            else (),
        )
        for index, change in enumerate(types)
    )


def _ends_gap(change: ChangeType) -> bool:
    return change in _COUNTED_ONCE or change is ChangeType.RECOVERED


def _types(before: Known, after: Lease, holder: str | None, at: datetime) -> list[ChangeType]:
    if holder != before.holder:
        return [_of_holder(before, holder, at)]
    types = []
    renewed = after.spec.renew_time != before.lease.spec.renew_time
    if holder is not None:
        if _acquired_anew(before, after):
            types.append(ChangeType.RESTARTED)
        elif before.phase is Phase.EXPIRED and renewal_moved(before.lease, after):
            types.append(ChangeType.RECOVERED)
    first_renewal = renewed and not before.settled and holder is not None
    if not first_renewal and reconfigured_fields(before.lease, after):
        types.append(ChangeType.RECONFIGURED)
    return types


def _of_holder(before: Known, holder: str | None, at: datetime) -> ChangeType:
    if holder is None:
        return ChangeType.RELEASED
    if before.holder is None:
        return ChangeType.ACQUIRED
    runs_out = runs_out_at(before.lease, before.observed_at)
    valid = runs_out is None or at < runs_out
    return ChangeType.REPLACED if valid else ChangeType.TAKEN_OVER


def _acquired_anew(before: Known, after: Lease) -> bool:
    """A new acquireTime under the old name; one that a first renewal adds is not new."""
    acquired, earlier = after.spec.acquire_time, before.lease.spec.acquire_time
    if acquired is None or acquired == earlier:
        return False
    return earlier is not None or before.settled


def _missed(change: ChangeType, before: Lease, after: Lease) -> int:
    old, new = before.spec.lease_transitions, after.spec.lease_transitions
    if old is None or new is None:
        return 0
    return min(max(0, new - old - (change in _COUNTED_ONCE)), MAX_INT32)


def _make_change(
    change: ChangeType,
    cluster: str,
    lease: Lease,
    *,
    kind: Kind,
    seen: Observation,
    at: datetime,
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
    """The fields that move observed_at: equal for all who saw this write or a later one that
    renewed nothing."""
    times = (time.isoformat() if time else "" for time in (spec.acquire_time, spec.renew_time))
    return " ".join([*times, str(spec.lease_duration_seconds), spec.holder_identity or ""])
