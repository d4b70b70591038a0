"""What we know of one Lease beside what it says itself, and what each step tells the sinks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from leases.domain.cadence import EMPTY, median
from leases.domain.changes.change import Change
from leases.domain.connection import Connection
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase, counted_holder, runs_out_at

_replace = msgspec.structs.replace


class NotUnderstood(msgspec.Struct, frozen=True, gc=False):
    """Why nobody knows how a Lease stands: its newest write could not be followed."""

    since: datetime  # our clock at the first write that could not
    at: datetime  # and at the newest
    reason: str
    before: Tracked | None  # as it was understood last; None: never


class Lasting(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a plain renewal leaves as it is, shared by all that is known from one to the next."""

    key: ObjectName
    lease: Lease  # as of the last write that was more than a plain renewal
    kind: Kind
    kind_reason: str
    phase: Phase  # as of the last event or deadline; turned by the clock, see Store.turn
    phase_since: datetime
    held_since: datetime | None = None  # start of the present term; None while nobody holds
    gap_since: datetime | None = None  # since when nobody validly holds; None while somebody does
    settled: bool = False  # the present holder has renewed since it came
    rewritten: str = ""  # version of the write that moved observed_at, if renewTime did not go on
    named: bool = False  # it has named a holder at some time, so that no name means nobody
    # An admin set the kind. Stored under its first name, so that older checkpoints are read.
    overridden: bool = msgspec.field(default=False, name="overruled")
    not_understood: NotUnderstood | None = None  # what else is here is as it was before


class Tracked(msgspec.Struct, frozen=True, gc=False):
    """One Lease and our observations of it. Replaced, never changed: any thread may read it."""

    lasting: Lasting
    renew_time: datetime | None
    observed_at: datetime  # our clock when the renewal fields last moved
    estimated: bool  # observed_at was taken from renewTime; no renewal has been seen yet
    renewals_seen: int = 0
    intervals: bytes = EMPTY  # the last between renewals, see cadence_seconds
    lags: bytes = EMPTY  # the last of receipt minus renewTime, see skew_seconds
    version: int = 0  # of the last plain renewal; 0 when there was none since `lasting`

    @property
    def lease(self) -> Lease:
        """The Lease as it is now; what renewals leave alone is cheaper to have of `lasting`."""
        lease = self.lasting.lease
        if not self.version:
            return lease
        meta = _replace(lease.metadata, resource_version=self.resource_version)
        return Lease(meta, _replace(lease.spec, renew_time=self.renew_time))

    @property
    def resource_version(self) -> str:
        return str(self.version) if self.version else self.lasting.lease.resource_version

    @property
    def key(self) -> ObjectName:
        return self.lasting.key

    @property
    def kind(self) -> Kind:
        return self.lasting.kind

    @property
    def kind_reason(self) -> str:
        return self.lasting.kind_reason

    @property
    def phase(self) -> Phase:
        return self.lasting.phase

    @property
    def phase_since(self) -> datetime:
        return self.lasting.phase_since

    @property
    def held_since(self) -> datetime | None:
        return self.lasting.held_since

    @property
    def gap_since(self) -> datetime | None:
        return self.lasting.gap_since

    @property
    def settled(self) -> bool:
        return self.lasting.settled

    @property
    def rewritten(self) -> str:
        return self.lasting.rewritten

    @property
    def named(self) -> bool:
        return self.lasting.named

    @property
    def overridden(self) -> bool:
        return self.lasting.overridden

    @property
    def holder(self) -> str | None:
        """Who counts as the holder: a heartbeat that never names one is held by its own name."""
        lasting = self.lasting
        return counted_holder(lasting.lease, lasting.kind, named=lasting.named)

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
        return None if self.holder is None else runs_out_at(self.lasting.lease, self.observed_at)

    def replace(self, *, lease: Lease | None = None, **changes: Any) -> Tracked:
        """The same with other values, of what lasts too; `lease` is the one as it is now."""
        lasts = {name: changes.pop(name) for name in _LASTS & changes.keys()}
        if lease is not None:
            lasts["lease"] = lease
            changes |= {"renew_time": lease.spec.renew_time, "version": 0}
        lasting = _replace(self.lasting, **lasts) if lasts else self.lasting
        return _replace(self, lasting=lasting, **changes)


_LASTS = frozenset(Lasting.__struct_fields__)


class Skipped(msgspec.Struct, frozen=True):
    """A write, or a deadline, that could not be followed; everything else goes on."""

    key: ObjectName | None  # None: not even its name could be read
    reason: str
    error: Exception | None = None  # ours; None: the bytes are no Lease
    again: bool = False  # for the same reason as the one before


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """What one step changed in one cluster, for every sink, on the event loop: never block."""

    cluster: str
    now: datetime
    seq: int
    changes: tuple[Change, ...] = ()
    redraw: tuple[
        ObjectName, ...
    ] = ()  # rows that look different: phase, holder, kind, configuration
    renewed: tuple[ObjectName, ...] = ()  # rows whose freshness alone moved, as often as it did
    removed: tuple[ObjectName, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    connection: Connection | None = None  # set when it changed
    listed: bool = False  # the whole picture was replaced: readers refetch rather than follow
    partial: bool = False  # a part of it was; the rest comes soon, `listed` with the last


Sink = Callable[[Update], None]
