"""Decide the phase of a Lease, when it changes next, and why: as client-go's contenders judge it.

The clock is ours: a Lease lasts leaseDurationSeconds from when we observed its last renewal,
whatever the holder wrote into renewTime (client-go leaderelection.go, isLeaseValid).

A median ignores a missed renewal and the two renewals 10 ms apart at the start of a client-go term,
and follows a new configuration within three renewals. The clock skew is learned the same way.
Samples are packed into bytes to save memory: each Lease has two such windows.
"""

from datetime import datetime
from enum import StrEnum
from struct import Struct
from typing import Protocol

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import Lease
from leases.domain.steady_clock import after

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


class KnownLease(Protocol):
    """What is known of a Lease, as `leases.tracking.tracked_lease` describes it."""

    @property
    def lease(self) -> Lease: ...
    @property
    def holder(self) -> str | None: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def phase(self) -> Phase: ...
    @property
    def phase_since(self) -> datetime: ...
    @property
    def gap_since(self) -> datetime | None: ...
    @property
    def observed_at(self) -> datetime: ...
    @property
    def renewed_at(self) -> datetime: ...
    @property
    def lasts_seconds(self) -> int | None: ...
    @property
    def cadence_seconds(self) -> float | None: ...
    @property
    def skew_seconds(self) -> float | None: ...
    @property
    def renewals_seen(self) -> int: ...
    @property
    def settled(self) -> bool: ...
    @property
    def rewritten(self) -> str: ...


class Clause(msgspec.Struct, frozen=True, gc=False):
    """A part of an explanation, around one number of seconds if any; an int is a setting.

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
        whole = isinstance(self.seconds, int)
        number = "" if self.seconds is None else f"{self.seconds:{'d' if whole else '.1f'}} s"
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
    """Return the named holder, or for a heartbeat that never names one its own name.

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


def trusted_cadence(known: KnownLease) -> float | None:
    """Return the learned cadence in seconds; None: too few renewals were observed."""
    return known.cadence_seconds if known.renewals_seen >= ENOUGH_RENEWALS else None


def late_after(known: KnownLease) -> float | None:
    """Return the age in seconds beyond which a held Lease is late; None when it cannot be."""
    cadence, duration = trusted_cadence(known), known.lasts_seconds
    if cadence is not None:
        return max(CADENCES * cadence, cadence + SLACK)
    return None if duration is None else DEADLINE_SHARE * duration


def is_near_miss(known: KnownLease, seconds: float) -> bool:
    """Whether a renewal of an election was overdue, so long after the one before, and came within
    a third of running out. Every page, count and metric of near misses goes by this.
    """
    late, duration = late_after(known), known.lasts_seconds
    if known.kind is not Kind.ELECTION or known.holder is None:
        return False
    if trusted_cadence(known) is None or late is None or duration is None:
        return False
    return max(late, DEADLINE_SHARE * duration) <= seconds < duration


def phase_of(known: KnownLease, now: datetime) -> Phase:
    """Return the phase at `now`: vacant, untimed, expired, late or held."""
    if known.holder is None:
        return Phase.VACANT
    observed_at, duration, late = known.observed_at, known.lasts_seconds, late_after(known)
    if duration is not None and now >= after(observed_at, duration):
        return Phase.EXPIRED
    if late is not None and now >= after(observed_at, late, microseconds=1):
        return Phase.LATE
    return Phase.UNTIMED if duration is None else Phase.HELD


def next_turn(known: KnownLease) -> datetime | None:
    """Return when the phase changes unless somebody writes; None when it stays."""
    phase, duration = known.phase, known.lasts_seconds
    if phase is Phase.VACANT or phase is Phase.EXPIRED:
        return None
    late = None if phase is Phase.LATE else late_after(known)
    if late is not None and (duration is None or duration > late):
        return after(known.observed_at, late, microseconds=1)
    return None if duration is None else after(known.observed_at, duration)


def wall_clock_expired(lease: Lease, now: datetime) -> bool | None:
    """Return the verdict of a controller that trusts renewTime; None when it cannot expire."""
    renewed, seconds = lease.spec.renew_time, lease.spec.lease_duration_seconds
    if renewed is None or seconds is None:
        return None
    return after(renewed, seconds) < now


def explain(known: KnownLease, now: datetime) -> Explanation:
    """Explain the phase, e.g. "renewed 17 s ago; lasts 15 s; ran out 2 s ago"."""
    phase = phase_of(known, now)
    return Explanation(
        phase=phase,
        clauses=tuple(_clauses(known, phase, now)),
        wall_clock_expired=wall_clock_expired(known.lease, now),
    )


def _clauses(known: KnownLease, phase: Phase, now: datetime) -> list[Clause]:
    if phase is Phase.VACANT:
        return [Clause("nobody holds it")]
    spec = known.lease.spec
    age = (now - known.observed_at).total_seconds()
    edited = (known.observed_at - known.renewed_at).total_seconds()
    clauses = [
        Clause("renewed ", age + edited, " ago", "up", -edited)
        if spec.renew_time
        else Clause("never renewed")
    ]
    if phase is Phase.LATE:
        cadence = trusted_cadence(known)
        late = Clause("late after ", late_after(known))
        clauses.append(late if cadence is None else Clause("due every ", cadence))
    duration = spec.lease_duration_seconds
    if duration is None or spec.renew_time is None:
        missing = "leaseDurationSeconds" if duration is None else "renewTime"
        return [*clauses, Clause(f"without {missing} it cannot run out")]
    if edited:
        clauses.append(Clause("leaseDurationSeconds edited ", age, " ago", "up"))
    clauses.append(Clause("lasts from then on " if edited else "lasts ", duration))
    left = duration - age
    contended = known.kind not in (Kind.HEARTBEAT, Kind.IDENTITY)  # nobody else acquires those
    if phase is not Phase.EXPIRED:
        runs_out = "others may take it in " if contended else "runs out in "
        return [*clauses, Clause(runs_out, left, "", "down", duration)]
    told = " ago: others may take it" if contended else " ago"
    return [*clauses, Clause("ran out ", -left, told, "up", duration)]


WINDOW = 5  # samples kept per Lease: enough to ignore two odd ones
_pack = Struct("d").pack
_ROOM = WINDOW * Struct("d").size

EMPTY = b""


def with_sample(window: bytes, sample: float) -> bytes:
    """Add a sample; drop the oldest if the window is full."""
    return (window + _pack(sample))[-_ROOM:]


def samples(window: bytes) -> list[float]:
    """Return the samples, oldest first."""
    return list(memoryview(window).cast("d"))


def median(window: bytes) -> float | None:
    """Return the median (the upper of two); None if there are no samples."""
    if not window:
        return None
    numbers: list[float] = sorted(memoryview(window).cast("d"))
    return numbers[len(numbers) // 2]
