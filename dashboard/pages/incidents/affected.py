"""Who was affected by an incident: each Lease with its holder before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from dashboard.parts.formatting import age
from dashboard.parts.holder_name import HolderView, holder_view
from dashboard.parts.lease.row import lease_url
from dashboard.parts.lease.shown_name import ShownName, shown_name
from leases.domain.cause.incident import Incident
from leases.domain.changes.change import COUNTED_ONCE, Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.severity import LONG_GAP_SECONDS

_TO_NOBODY = (ChangeType.EXPIRED, ChangeType.RELEASED)
_BEGINS = COUNTED_ONCE | {ChangeType.CREATED, ChangeType.RECOVERED}


class AffectedLease(msgspec.Struct, frozen=True, kw_only=True):
    """One Lease of an incident. `changes` is empty if none of them is stored with the incident.

    `lost` is its time without a holder in seconds, `longest` the longest part of it in one piece;
    `open` says that it goes on.
    """

    key: ObjectName
    changes: tuple[Change, ...]
    before: str | None
    after: str | None
    lost: float
    longest: float
    open: bool

    @property
    def silent(self) -> bool:
        """Whether it is a heartbeat: nobody could have taken it over."""
        return bool(self.changes) and self.changes[0].kind is Kind.HEARTBEAT

    @property
    def lost_words(self) -> str:
        if not self.lost:
            return "never without a holder"
        return f"without a holder for {age(self.lost)}{' so far' if self.open else ''}"


class AffectedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    key: ObjectName
    shown: ShownName
    url: str
    known: bool
    before: HolderView | None
    after: HolderView | None
    lost: str
    bad: bool


def affected_leases(
    incident: Incident, story: Iterable[Change], now: datetime
) -> list[AffectedLease]:
    """Every Lease of the incident, the longest without a holder first."""
    changes: dict[ObjectName, list[Change]] = {key: [] for key in incident.leases}
    for change in sorted(story, key=lambda one: (one.at, one.observed_at)):
        changes.setdefault(ObjectName(change.namespace, change.name), []).append(change)
    end = incident.ended or now
    found = [_affected(key, some, end) for key, some in changes.items()]
    return sorted(found, key=lambda one: (-one.lost, not one.changes, one.key))


def affected_line(cluster: str, one: AffectedLease) -> AffectedLine:
    return AffectedLine(
        key=one.key,
        shown=shown_name(cluster, one.key),
        url=lease_url(cluster, one.key),
        known=bool(one.changes),
        before=holder_view(one.before),
        after=holder_view(one.after),
        lost=_lost_in_short(one),
        bad=one.lost >= LONG_GAP_SECONDS,
    )


def _lost_in_short(one: AffectedLease) -> str:
    if not one.lost:
        return ""
    return f"{'silent ' if one.silent else ''}{age(one.lost)}{' so far' if one.open else ''}"


def _affected(key: ObjectName, changes: Sequence[Change], end: datetime) -> AffectedLease:
    if not changes:
        return AffectedLease(
            key=key, changes=(), before=None, after=None, lost=0.0, longest=0.0, open=False
        )
    first, last = changes[0], changes[-1]
    expired = first.change is ChangeType.EXPIRED
    gaps = _gaps(changes, end)
    gone = (*_TO_NOBODY, ChangeType.DELETED)
    return AffectedLease(
        key=key,
        changes=tuple(changes),
        before=first.previous_holder or (first.holder if expired else None),
        after=None if last.change in gone else last.holder,
        lost=sum(gaps),
        longest=max(gaps, default=0.0),
        open=last.change in _TO_NOBODY,
    )


def _gaps(changes: Sequence[Change], end: datetime) -> list[float]:
    """The times without a valid holder in seconds, also the one that goes on at the end."""
    gaps, since = [], None
    for change in changes:
        if change.change in _TO_NOBODY:
            since = since or change.at
        elif change.change in _BEGINS:
            gaps.append(change.gap_seconds or 0.0)
            since = None
        elif change.change is ChangeType.DELETED:
            since = None
    return gaps if since is None else [*gaps, max(0.0, (end - since).total_seconds())]
