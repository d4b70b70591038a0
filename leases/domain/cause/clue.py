"""What the Leases themselves say about one change: the first evidence of its cause."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.cadence import EMPTY, median, samples
from leases.domain.cause.incident import Member
from leases.domain.changes.change import Change
from leases.domain.changes.change_identity import identity
from leases.domain.changes.field_managers import Managers
from leases.domain.lease import Lease, ObjectName


class LateRenewal(msgspec.Struct, frozen=True, gc=False):
    """A renewal that came within a third of running out: a near miss."""

    key: ObjectName
    at: datetime  # our clock when it came
    seconds: float  # since the renewal before it
    duration_seconds: int  # of the Lease
    holder: str


class OverdueInterval(msgspec.Struct, frozen=True, gc=False):
    """A renewal that was overdue, by our clock."""

    at: datetime
    seconds: float  # since the renewal before it


class Silence(msgspec.Struct, frozen=True, gc=False):
    """A time in which nobody wrote any Lease of the cluster while our watch was open."""

    since: datetime
    until: datetime
    expected: float  # writes, at the usual rate

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


class Clue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change with what was known of its Lease just before."""

    change: Change
    before: Lease | None = None  # None: nothing was known of it
    after: Lease | None = None  # None: no write caused the change, or it was deleted
    observed_at: datetime | None = None  # our clock at the last renewal before
    held_since: datetime | None = None  # of the holder before
    renewals_seen: int = 0
    intervals: bytes = EMPTY  # the last few of the holder before, by its clock
    lags: bytes = EMPTY  # receipt minus renewTime, the last few of the holder before
    overdue: tuple[OverdueInterval, ...] = ()  # the last renewals that came late, oldest first
    managers: Managers = ()  # of the Lease after the change
    silences: tuple[Silence, ...] = ()  # of the whole cluster, lately
    usual_writer: str | None = None  # who wrote its last acquisition, if the casebook knows
    stored_as: str = ""  # the change's key, where it was read from history

    @property
    def key(self) -> ObjectName:
        return ObjectName(self.change.namespace, self.change.name)

    @property
    def identity(self) -> str:
        """The change's key in history."""
        return self.stored_as or identity(self.change)

    @property
    def member(self) -> Member:
        return Member(self.key, self.identity)

    @property
    def cadence_seconds(self) -> float | None:
        return median(self.intervals)

    @property
    def skew_seconds(self) -> float | None:
        """How far the clock of the holder before is behind ours."""
        return median(self.lags)

    @property
    def renew_intervals(self) -> list[float]:
        """The last intervals between renewals of the holder before, oldest first, in seconds."""
        return samples(self.intervals)
