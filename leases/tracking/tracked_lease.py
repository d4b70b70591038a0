"""The state of one Lease beside its content, and the update that each step sends to the sinks.

The decoder makes a new string for every text; a heartbeat contains its own name three times.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from sys import intern
from typing import Any, cast

import msgspec

from leases.domain.cause.clue import Clue, LateRenewal
from leases.domain.change import Change
from leases.domain.figures import Span
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName, OwnerReference
from leases.domain.phase import EMPTY, Phase, counted_holder, median, runs_out_at
from leases.domain.steady_clock import EARLIEST
from leases.domain.watched_times import Connection, MissedTime

_replace = msgspec.structs.replace
MAX_LAPSES = 200


def compact(lease: Lease, before: Lease | None = None) -> Lease:
    """Return the same in less memory: with the values of the Lease `before` where they are equal,
    which every change, clue and incident of it keeps.
    """
    meta, spec = lease.metadata, lease.spec
    known = {} if before is None else _equal(before.metadata, meta, _OF_META)
    owners = meta.owner_references
    if owners is not None and "owner_references" not in known:
        known["owner_references"] = tuple([_owner(owner, meta.name) for owner in owners])
    meta = _replace(meta, **{"namespace": intern(meta.namespace)} | known)
    if spec.holder_identity == meta.name:
        spec = _replace(spec, holder_identity=meta.name)
    elif before is not None and spec.holder_identity == before.spec.holder_identity:
        spec = _replace(spec, holder_identity=before.spec.holder_identity)
    return Lease(meta, spec)


_OF_META = ("name", "uid", "labels", "annotations", "owner_references")


def _equal(before: Any, after: Any, names: Iterable[str]) -> dict[str, Any]:
    values = ((name, getattr(before, name)) for name in names)
    return {name: value for name, value in values if value == getattr(after, name)}


def _owner(owner: OwnerReference, name: str) -> OwnerReference:
    return OwnerReference(intern(owner.kind), name if owner.name == name else owner.name)


class NotUnderstood(msgspec.Struct, frozen=True, gc=False):
    """Why the state of a Lease is unknown: its newest write could not be followed."""

    since: datetime  # our clock at the first such write
    at: datetime  # our clock at the newest
    reason: str
    before: Tracked | None  # the last state that was understood, if any


class Usual(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Lasting of a Lease to which nothing unusual happened: its other fields are the defaults."""

    key: ObjectName
    # Of the last write that was more than a plain renewal. Read Tracked for its renewTime and
    # resourceVersion.
    lease: Lease
    kind: Kind
    kind_reason: str
    phase: Phase  # of the last event or deadline; see Store.turn
    phase_since: datetime
    held_since: datetime | None = None  # start of the current term; None while nobody holds
    settled: bool = False  # the current holder has renewed at least once
    named: bool = False  # it named a holder before, so an empty name means nobody


class Lasting(Usual, frozen=True, kw_only=True, gc=False):
    """What a plain renewal leaves unchanged. Consecutive states share it."""

    gap_since: datetime | None = None  # since when nobody validly holds; None while somebody does
    # The last renewal observed, if an edit of the duration moved observed_at since.
    renewed_at: datetime | None = None
    renewed_by_hand: bool = False  # the last write of renewTime was a person's
    rewritten: str = ""  # resourceVersion that moved observed_at, if renewTime did not grow
    released_by: str | None = None  # the last holder, while there is none
    lasted: int | None = None  # seconds, until that one released it
    # An admin set the kind. Stored under its first name, so that older checkpoints are read.
    overridden: bool = msgspec.field(default=False, name="overruled")
    not_understood: NotUnderstood | None = None  # if set, all other fields are older
    abandoned: bool = False  # of the present phase: read Tracked.abandoned
    may_be_vacant: str = ""  # the admin who said so
    # When the current term was expired, until it recovered: the newest MAX_LAPSES, oldest first.
    lapses: tuple[Span, ...] = ()


_USUAL = Usual.__struct_fields__
_UNUSUAL = {
    one.name: one.default for one in msgspec.structs.fields(Lasting) if one.name not in _USUAL
}
for _name, _default in _UNUSUAL.items():
    setattr(Usual, _name, _default)  # it reads as a Lasting does


def once_renewed(lasting: Lasting) -> Lasting:
    """Return it in less memory: without what Tracked has of its own after a plain renewal, and
    without the fields for what is unusual if all have their defaults.
    """
    meta = _replace(lasting.lease.metadata, resource_version="")
    # Some time, as the rules ask whether there is any.
    lease = Lease(meta, _replace(lasting.lease.spec, renew_time=EARLIEST))
    if any(getattr(lasting, name) != default for name, default in _UNUSUAL.items()):
        return _replace(lasting, lease=lease)
    usual = Usual(**{name: getattr(lasting, name) for name in _USUAL} | {"lease": lease})
    return cast("Lasting", usual)


class Tracked(msgspec.Struct, frozen=True, gc=False):
    """One Lease with our observations of it. Immutable: any thread may read it."""

    lasting: Lasting
    renew_time: datetime | None
    observed_at: datetime  # our clock when the renewal fields last moved
    estimated: bool  # observed_at is from renewTime: no renewal was observed yet
    renewals_seen: int = 0
    intervals: bytes = EMPTY  # the last few, see cadence_seconds
    lags: bytes = EMPTY  # receipt minus renewTime, the last few, see skew_seconds
    version: int = 0  # of the last plain renewal; 0: none since `lasting`

    @property
    def lease(self) -> Lease:
        """The current Lease. `lasting.lease` is cheaper for fields that renewals do not change."""
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
    def lapses(self) -> tuple[Span, ...]:
        return self.lasting.lapses

    @property
    def gap_since(self) -> datetime | None:
        return self.lasting.gap_since

    @property
    def trouble_since(self) -> datetime:
        """Since when nobody holds it; while somebody does, since when it is in its phase."""
        return self.lasting.gap_since or self.lasting.phase_since

    @property
    def was_vacant(self) -> bool:
        """Whether it was vacant when it was first seen: nobody knows since when."""
        return self.lasting.phase is Phase.VACANT and self.lasting.gap_since is None

    @property
    def lasts(self) -> float:
        """Seconds; who releases a Lease writes 1."""
        lasting = self.lasting
        return float(lasting.lasted or lasting.lease.spec.lease_duration_seconds or 0)

    @property
    def changed_at(self) -> datetime:
        """When the newest change that it shows happened."""
        lasting = self.lasting
        moments = (lasting.phase_since, lasting.held_since, lasting.gap_since)
        return max(self.observed_at, *(one for one in moments if one is not None))

    @property
    def renewed_at(self) -> datetime:
        """When we observed the last renewal. Expiry counts from observed_at, which edits move."""
        return self.lasting.renewed_at or self.observed_at

    @property
    def settled(self) -> bool:
        return self.lasting.settled

    @property
    def rewritten(self) -> str:
        return self.lasting.rewritten

    @property
    def holder(self) -> str | None:
        """Who counts as the holder. A heartbeat that never names one is held by its own name."""
        lasting = self.lasting
        return counted_holder(lasting.lease, lasting.kind, named=lasting.named)

    @property
    def abandoned(self) -> bool:
        """Whether nobody is expected to hold it again, see leases.domain.figures."""
        lasting = self.lasting
        return lasting.abandoned and lasting.phase in (Phase.VACANT, Phase.EXPIRED)

    @property
    def excused(self) -> bool:
        """Whether it is no trouble that nobody holds it: abandoned, or it may be vacant."""
        lasting = self.lasting
        if lasting.phase is Phase.VACANT and lasting.may_be_vacant:
            return True
        return self.abandoned

    @property
    def cadence_seconds(self) -> float | None:
        """The learned interval between renewals, if any."""
        return median(self.intervals)

    @property
    def skew_seconds(self) -> float | None:
        """How far this holder's clock is behind ours, transport time included."""
        return median(self.lags)

    @property
    def lasts_seconds(self) -> int | None:
        """How long it is valid after a renewal; None when it cannot expire."""
        if self.renew_time is None:
            return None
        return self.lasting.lease.spec.lease_duration_seconds

    @property
    def runs_out_at(self) -> datetime | None:
        """When others may take it; None when vacant or untimed."""
        return None if self.holder is None else runs_out_at(self.lasting.lease, self.observed_at)

    def whole(self) -> Tracked:
        """Return the same with the current Lease in `lasting`, for who reads it again and again."""
        return self.replace(lease=self.lease) if self.version else self

    def replace(self, *, lease: Lease | None = None, **changes: Any) -> Tracked:
        """Return a copy with other values, of Lasting's fields too."""
        lasts = {name: changes.pop(name) for name in _LASTS & changes.keys()}
        if lease is not None:
            lasts["lease"] = lease
            changes |= {"renew_time": lease.spec.renew_time, "version": 0}
        lasting = _lasting(self.lasting, lasts) if lasts else self.lasting
        return _replace(self, lasting=lasting, **changes)


_LASTS = frozenset(Lasting.__struct_fields__)


def _lasting(before: Lasting, changes: dict[str, Any]) -> Lasting:
    if type(before) is Lasting or not changes.keys() & _UNUSUAL.keys():
        return _replace(before, **changes)
    return Lasting(**{name: getattr(before, name) for name in _USUAL} | changes)


logger = logging.getLogger(__name__)
_decode = msgspec.json.Decoder(Tracked).decode


def read_remembered(records: Iterable[bytes]) -> list[Tracked]:
    """Return the states that can be read. Any other Lease counts as new."""
    states, unreadable = [], 0
    for record in records:
        try:
            states.append(_shared(_decode(record)))
        except msgspec.DecodeError:
            unreadable += 1
    if unreadable:
        logger.warning("%d stored Leases cannot be read and count as new", unreadable)
    return states


def _shared(known: Tracked) -> Tracked:
    """Share texts and moments, as for a Lease from the wire: the decoder makes each anew."""
    lasting = known.lasting
    lease = compact(lasting.lease)
    created, held = lease.metadata.creation_timestamp, lasting.held_since
    since = created if created == lasting.phase_since else lasting.phase_since
    lasting = _replace(
        lasting,
        key=lease.key,
        lease=lease,
        kind_reason=intern(lasting.kind_reason),
        phase_since=since,
        held_since=since if since == held else held,
    )
    return _replace(known, lasting=once_renewed(lasting) if known.version else lasting)


class Skipped(msgspec.Struct, frozen=True):
    """A write or a deadline that could not be followed; everything else goes on."""

    key: ObjectName | None  # None: not even its name was readable
    reason: str
    error: Exception | None = None  # our exception; None: the bytes are no Lease
    again: bool = False  # for the same reason as the write before


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """What one step changed in one cluster. Sinks get it on the event loop and must not block."""

    cluster: str
    now: datetime
    seq: int
    changes: tuple[Change, ...] = ()
    clues: tuple[Clue, ...] = ()  # one for each change
    late: tuple[LateRenewal, ...] = ()  # near misses
    redraw: tuple[ObjectName, ...] = ()  # rows whose phase, holder, kind or configuration changed
    renewed: tuple[ObjectName, ...] = ()  # rows that were only renewed, once per renewal
    removed: tuple[ObjectName, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    connection: Connection | None = None  # set if it changed
    missed: MissedTime | None = None  # a time in which nobody watched has ended, or is known better
    listed: bool = False  # the last page of a list: readers reload instead of following
    first: bool = False  # of the first list of a cluster, which nobody watched before


Sink = Callable[[Update], None]
