"""What we know of one Lease beside what it says itself, and what each step tells the sinks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from leases.domain.cadence import EMPTY, median
from leases.domain.change import Change
from leases.domain.connection import Connection
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase, counted_holder, runs_out_at


class Tracked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One Lease and our observations of it. Replaced, never changed: any thread may read it."""

    lease: Lease
    kind: Kind
    kind_reason: str
    phase: Phase  # as of the last event or deadline; turned by the clock, see Store.turn
    phase_since: datetime
    observed_at: datetime  # our clock when the renewal fields last moved
    estimated: bool  # observed_at was taken from renewTime; no renewal has been seen yet
    renewals_seen: int = 0
    held_since: datetime | None = None  # start of the present term; None while nobody holds
    gap_since: datetime | None = None  # since when nobody validly holds; None while somebody does
    settled: bool = False  # the present holder has renewed since it came
    rewritten: str = ""  # version of the write that moved observed_at, if renewTime did not go on
    named: bool = False  # it has named a holder at some time, so that no name means nobody
    overruled: bool = False  # an admin says what it is for: the rules are not asked
    intervals: bytes = EMPTY  # the last between renewals, see cadence_seconds
    lags: bytes = EMPTY  # the last of receipt minus renewTime, see skew_seconds

    @property
    def key(self) -> ObjectName:
        return self.lease.key

    @property
    def holder(self) -> str | None:
        """Who counts as the holder: a heartbeat that never names one is held by its own name."""
        return counted_holder(self.lease, self.kind, named=self.named)

    @property
    def cadence_seconds(self) -> float | None:
        """The learned interval between renewals; None before there was one."""
        return median(self.intervals)

    @property
    def skew_seconds(self) -> float | None:
        """By how much this holder's clock is behind ours, with what the way here takes."""
        return median(self.lags)

    @property
    def runs_out_at(self) -> datetime | None:
        """The first moment at which others may take it; None when vacant or untimed."""
        return None if self.holder is None else runs_out_at(self.lease, self.observed_at)


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """What one step changed in one cluster, for every sink, on the event loop: never block."""

    cluster: str
    now: datetime
    seq: int
    changes: tuple[Change, ...] = ()
    redraw: tuple[
        ObjectName, ...
    ] = ()  # rows that look different: phase, holder, kind, configuration
    renewed: tuple[ObjectName, ...] = ()  # rows whose freshness alone moved
    removed: tuple[ObjectName, ...] = ()
    connection: Connection | None = None  # set when it changed
    listed: bool = False  # the whole picture was replaced: readers refetch rather than follow
    partial: bool = False  # a part of it was; the rest comes soon, `listed` with the last


Sink = Callable[[Update], None]
