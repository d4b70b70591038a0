"""Decide the phase of a Lease, when it changes next, and why: as client-go's contenders judge it.

The clock is ours: a Lease lasts leaseDurationSeconds from when we observed its last renewal,
whatever the holder wrote into renewTime (client-go leaderelection.go, isLeaseValid).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from leases.domain.bounded_time import after
from leases.domain.kind import Kind
from leases.domain.lease import Lease

ENOUGH_RENEWALS = 3  # needed before the learned cadence is trusted
DEADLINE_SHARE = 2 / 3  # client-go's default renew deadline: 10 s of 15 s
CADENCES = 2.0  # an age of more than this many intervals is late
SLACK = 1.0  # seconds that a renewal may always be overdue


class Phase(StrEnum):
    """The phase of a Lease. The value is the word in JSON, CSS, URLs and on the screen."""

    HELD = "held"
    LATE = "late"
    EXPIRED = "expired"
    VACANT = "vacant"
    UNTIMED = "untimed"

    # Enum's own hash is slow Python code, and every event uses these as keys.
    __hash__ = str.__hash__


class Clause(msgspec.Struct, frozen=True, gc=False):
    """A part of an explanation, around one number of seconds if any.

    `counts`: the number is the time passed ("up") or left ("down") of `offset` seconds since
    observed_at, so that a browser can keep counting.
    """

    before: str
    seconds: float | None = None
    after: str = ""
    counts: str = ""
    offset: float = 0.0

    @property
    def text(self) -> str:
        number = "" if self.seconds is None else f"{self.seconds:.1f} s"
        return f"{self.before}{number}{self.after}"


class Explanation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A phase with its numbers, and the verdict of controllers that trust renewTime.

    That verdict, `wall_clock_expired`, is None when the Lease cannot expire.
    """

    phase: Phase
    clauses: tuple[Clause, ...]
    wall_clock_expired: bool | None

    @property
    def text(self) -> str:
        return "; ".join(clause.text for clause in self.clauses)


def counted_holder(lease: Lease, kind: Kind, *, named: bool = False) -> str | None:
    """Return who counts as the holder: the named one, or the name of a heartbeat that never names
    one.

    `named`: it named a holder before, so an empty name means nobody.
    """
    if lease.spec.holder_identity:
        return lease.spec.holder_identity
    return lease.metadata.name if kind is Kind.HEARTBEAT and not named else None


def runs_out_at(lease: Lease, observed_at: datetime) -> datetime | None:
    """Return when others may take it; None when it cannot expire."""
    seconds = lease.spec.lease_duration_seconds
    if seconds is None or lease.spec.renew_time is None:
        return None
    return after(observed_at, seconds)


def late_after(
    duration_seconds: int | None, cadence_seconds: float | None, renewals_seen: int
) -> float | None:
    """Return the age in seconds beyond which a held Lease is late; None when it cannot be."""
    if cadence_seconds is not None and renewals_seen >= ENOUGH_RENEWALS:
        return max(CADENCES * cadence_seconds, cadence_seconds + SLACK)
    return None if duration_seconds is None else DEADLINE_SHARE * duration_seconds


def phase_of(
    lease: Lease,
    *,
    observed_at: datetime,
    cadence_seconds: float | None,
    renewals_seen: int,
    kind: Kind,
    now: datetime,
    named: bool = False,
) -> Phase:
    """Return the phase at `now`: vacant, untimed, expired, late or held."""
    if counted_holder(lease, kind, named=named) is None:
        return Phase.VACANT
    runs_out = runs_out_at(lease, observed_at)
    if runs_out is not None and now >= runs_out:
        return Phase.EXPIRED
    late = _late_from(lease, observed_at, cadence_seconds, renewals_seen)
    if late is not None and now >= late:
        return Phase.LATE
    return Phase.UNTIMED if runs_out is None else Phase.HELD


def next_turn(
    lease: Lease,
    *,
    observed_at: datetime,
    cadence_seconds: float | None,
    renewals_seen: int,
    phase: Phase,
) -> datetime | None:
    """Return when the phase changes unless somebody writes; None when it stays."""
    if phase is Phase.VACANT or phase is Phase.EXPIRED:
        return None
    if phase is Phase.LATE:
        return runs_out_at(lease, observed_at)
    spec = lease.spec
    duration = spec.lease_duration_seconds if spec.renew_time is not None else None
    late = late_after(duration, cadence_seconds, renewals_seen)
    if late is None or (duration is not None and duration <= late):
        return runs_out_at(lease, observed_at)
    return after(observed_at, late, microseconds=1)


def _late_from(
    lease: Lease, observed_at: datetime, cadence_seconds: float | None, renewals_seen: int
) -> datetime | None:
    """Return the first microsecond at which it is late."""
    timed = lease.spec.renew_time is not None
    duration = lease.spec.lease_duration_seconds if timed else None
    seconds = late_after(duration, cadence_seconds, renewals_seen)
    if seconds is None:
        return None
    return after(observed_at, seconds, microseconds=1)


def wall_clock_expired(lease: Lease, now: datetime) -> bool | None:
    """Return the verdict of a controller that trusts renewTime; None when it cannot expire."""
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    if renewed is None or seconds is None:
        return None
    return after(renewed, seconds) < now


def explain(
    lease: Lease,
    *,
    observed_at: datetime,
    cadence_seconds: float | None,
    renewals_seen: int,
    kind: Kind,
    now: datetime,
    named: bool = False,
) -> Explanation:
    """Explain the phase at `now`: "renewed 17.2 s ago; lasts 15 s; others may take it since
    2.2 s".
    """
    phase = phase_of(
        lease,
        observed_at=observed_at,
        cadence_seconds=cadence_seconds,
        renewals_seen=renewals_seen,
        kind=kind,
        now=now,
        named=named,
    )
    clauses = _clauses(lease, phase, observed_at, cadence_seconds, renewals_seen, now)
    return Explanation(
        phase=phase, clauses=tuple(clauses), wall_clock_expired=wall_clock_expired(lease, now)
    )


def _clauses(
    lease: Lease,
    phase: Phase,
    observed_at: datetime,
    cadence_seconds: float | None,
    renewals_seen: int,
    now: datetime,
) -> list[Clause]:
    if phase is Phase.VACANT:
        return [Clause("nobody holds it")]
    spec = lease.spec
    age = (now - observed_at).total_seconds()
    never = Clause("never renewed")
    clauses = [Clause("renewed ", age, " ago", "up") if spec.renew_time else never]
    if phase is Phase.LATE:
        clauses.append(_due(lease, cadence_seconds, renewals_seen))
    duration = spec.lease_duration_seconds
    if duration is None or runs_out_at(lease, observed_at) is None:
        missing = "leaseDurationSeconds" if duration is None else "renewTime"
        return [*clauses, Clause(f"without {missing} it cannot run out")]
    clauses.append(Clause(f"lasts {duration} s"))
    left = duration - age
    if phase is Phase.EXPIRED:
        return [*clauses, Clause("others may take it since ", -left, "", "up", duration)]
    return [*clauses, Clause("others may take it in ", left, "", "down", duration)]


def _due(lease: Lease, cadence_seconds: float | None, renewals_seen: int) -> Clause:
    """When a late renewal was due."""
    if cadence_seconds is not None and renewals_seen >= ENOUGH_RENEWALS:
        return Clause("due every ", cadence_seconds)
    return Clause("late after ", late_after(lease.spec.lease_duration_seconds, None, 0))
