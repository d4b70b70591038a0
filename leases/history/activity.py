"""The last day of one cluster, kept in memory: changes per hour, flapping, watched times.

It starts from history and continues with the tracker's updates. A Lease that existed before we
started is no activity.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Container, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from leases import models
from leases.domain.change import Change, ChangeType
from leases.domain.figures import DEFAULT_ABANDONED_AFTER, FEWEST, BriefChange
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import EARLIEST, Jump, moved
from leases.domain.watched_times import (
    BRIEF,
    Connection,
    ConnectionState,
    UnwatchedTime,
    WatchedTime,
    unwatched,
)
from leases.history.database import from_stored
from leases.history.overrides import load_marks
from leases.history.rows import FIELDS, stored_change, stored_kind, to_change
from leases.history.watched_spans import spans_around

HOUR = timedelta(hours=1)
MAX_OF_LEASE = 2000  # changes that are kept of one Lease
MAX_KEPT = 50_000  # changes that are kept of all Leases of a group of kinds
# They all expire when a network fails. That must not displace what is known of elections.
_ONE_HOLDER = (Kind.HEARTBEAT, Kind.IDENTITY)


class LastHour:
    """Only the event loop writes; any thread may read. Each addition increments `version`."""

    def __init__(self) -> None:
        self.version = 0
        self._groups = (_Group(), _Group())

    def add(self, key: ObjectName, kind: Kind, change: BriefChange, now: datetime) -> None:
        self._groups[kind in _ONE_HOLDER].add(key, change, now)
        self.version += 1

    def of(self, key: ObjectName) -> tuple[BriefChange, ...]:
        """Return the newest changes of a Lease, the last one to arrive last."""
        few, many = (group.of(key) for group in self._groups)
        return few + many  # both only after a change of kind

    def often(self) -> list[ObjectName]:
        """Return the Leases with enough changes for one of the rules of flapping."""
        return [key for group in self._groups for key in group.often()]

    def totals(self, since: datetime) -> dict[ObjectName, int]:
        """Return the number of changes since then for each Lease that had any."""
        sums: dict[ObjectName, int] = {}
        for group in self._groups:
            for key, changes in group.all():
                number = sum(change.at >= since for change in changes)
                if number:
                    sums[key] = sums.get(key, 0) + number
        return sums

    def forget(self, now: datetime) -> None:
        """Drop the Leases whose last change is an hour old."""
        for group in self._groups:
            group.forget(now)

    def clock_jumped(self, jump: Jump) -> None:
        for group in self._groups:
            group.move(jump.by)


class _Group:
    """The changes of some kinds. A Lease's changes are one tuple, replaced whole."""

    def __init__(self) -> None:
        self._changes: dict[ObjectName, tuple[BriefChange, ...]] = {}
        self._often: dict[ObjectName, None] = {}
        self._order: dict[ObjectName, None] = {}  # the Lease that changed last comes last
        self._kept = 0

    def of(self, key: ObjectName) -> tuple[BriefChange, ...]:
        return self._changes.get(key, ())

    def often(self) -> list[ObjectName]:
        return list(self._often)

    def all(self) -> Iterable[tuple[ObjectName, tuple[BriefChange, ...]]]:
        return self._changes.copy().items()

    def add(self, key: ObjectName, change: BriefChange, now: datetime) -> None:
        known, oldest = self._changes.get(key, ()), now - HOUR
        if change.at < oldest:
            return
        old = 0
        while old < len(known) and known[old].at < oldest:
            old += 1
        changes = (*known[max(old, len(known) + 1 - MAX_OF_LEASE) :], change)
        self._changes[key] = changes
        self._kept += len(changes) - len(known)
        self._order.pop(key, None)
        self._order[key] = None
        if len(changes) >= FEWEST:
            self._often[key] = None
        else:
            self._often.pop(key, None)
        self.forget(now)

    def forget(self, now: datetime) -> None:
        """Drop from the front what is an hour old or too much."""
        oldest = now - HOUR
        while self._order:
            key = next(iter(self._order))
            if self._kept <= MAX_KEPT and self._changes[key][-1].at >= oldest:
                return
            del self._order[key]
            self._often.pop(key, None)
            self._kept -= len(self._changes.pop(key))

    def move(self, by: timedelta) -> None:
        self._changes = {
            key: tuple([msgspec.structs.replace(one, at=moved(one.at, by)) for one in changes])
            for key, changes in self._changes.items()
        }


DAY = timedelta(days=1)
MAX_SPANS = 2000  # enough for a connection that breaks all the time


class WatchedLately:
    """Only the event loop writes; any thread may read."""

    def __init__(self) -> None:
        self._spans: tuple[WatchedTime, ...] = ()  # oldest first
        self._open: WatchedTime | None = None
        self.since = EARLIEST  # when the last time ended that nobody watched

    @property
    def first(self) -> datetime | None:
        """When anybody is first known to have watched."""
        spans, still = self._spans, self._open
        return spans[0].since if spans else still.since if still else None

    def read(self, cluster: str, now: datetime) -> None:
        """Load the last day from history, other processes included."""
        self._spans = tuple(spans_around(cluster, since=now - DAY, until=now, now=now))

    def record(self, connection: Connection) -> None:
        if connection.state is ConnectionState.LIVE:
            if self._open is None:
                self._begin(connection.since)
        elif self._open is not None:
            self._end(self._open, connection.heard_at or connection.since)

    def stood_still(self, since: datetime, until: datetime) -> None:
        """Nothing ran in between, so nobody watched."""
        if self._open is not None:
            self._end(self._open, since)
            self._begin(until)

    def _begin(self, since: datetime) -> None:
        self._open = WatchedTime(since=since, until=since)
        before = max((span.until for span in self._spans), default=since)
        if since - before > BRIEF:
            self.since = since

    def _end(self, span: WatchedTime, at: datetime) -> None:
        until = max(span.since, at)
        recent = [one for one in self._spans if one.until > until - 2 * DAY]
        self._spans = (*recent[1 - MAX_SPANS :], replace(span, until=until))
        self._open = None

    def clock_jumped(self, jump: Jump) -> None:
        by = jump.by
        self._spans = tuple(_moved(span, by) for span in self._spans)
        self.since = moved(self.since, by)
        if self._open is not None:
            self._open = _moved(self._open, by)

    def unwatched(self, since: datetime, until: datetime) -> tuple[UnwatchedTime, ...]:
        """Return the parts of this range in which nobody watched, oldest first."""
        spans, still = self._spans, self._open
        if still is not None:
            spans = (*spans, replace(still, until=max(until, still.since)))
        return unwatched(spans, since=since, until=until)


def _moved(span: WatchedTime, by: timedelta) -> WatchedTime:
    return replace(span, since=moved(span.since, by), until=moved(span.until, by))


K = TypeVar("K")
HOURS = 24

MISSING = 200  # the newest changes with missed ones before them, kept whole
_MAX_READ = 500_000  # changes of the last day that a start reads
_SECONDS = 3600
_SMALL, _WIDE = "I", "d"  # per Lease, of which there may be 130,000; per kind
_LARGEST = 2**32 - 1


class _Hours(msgspec.Struct, gc=False):
    """Numbers per hour, and the newest hour. Replaced together: any thread may read them."""

    kept: tuple[int, array[Any]]

    @property
    def newest(self) -> int:
        return self.kept[0]

    def add(self, hour: int, by: float) -> None:
        if hour > self.kept[0]:
            self.kept = (hour, self.until(hour))
        newest, numbers = self.kept
        place = HOURS - 1 - (newest - hour)
        if place >= 0:
            numbers[place] = min(numbers[place] + by, _LARGEST)

    def until(self, hour: int) -> array[Any]:
        newest, numbers = self.kept
        passed = min(max(0, hour - newest), HOURS)
        return numbers[passed:] + array(numbers.typecode, [0] * passed)


def _hours_of(table: dict[K, _Hours], key: K, hour: int, code: str) -> _Hours:
    if (hours := table.get(key)) is None:
        hours = table[key] = _Hours((hour, array(code, [0] * HOURS)))
    return hours


class Activity:
    """One cluster's last day. Only the event loop writes; any thread may read."""

    def __init__(self, abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER) -> None:
        self._abandoned_after = abandoned_after.total_seconds()
        self._jumped = self._ahead = timedelta(0)  # sum of all clock jumps
        self.watched = WatchedLately()
        self._leases: dict[ObjectName, _Hours] = {}
        self._changes: dict[tuple[Kind, ChangeType], _Hours] = {}
        self._gaps: dict[Kind, _Hours] = {}
        self.last_hour = LastHour()
        self.missed: deque[Change] = deque(maxlen=MISSING)  # oldest first

    def clock_jumped(self, jump: Jump) -> None:
        self._jumped += jump.by
        self._ahead = round(self._jumped / HOUR) * HOUR  # keep whole hours
        by = jump.by
        self.watched.clock_jumped(jump)
        self.last_hour.clock_jumped(jump)
        self.missed = deque((_moved_change(one, by) for one in self.missed), MISSING)

    def note(self, changes: Iterable[Change], marks: Container[ObjectName] = ()) -> None:
        """`marks`: the Leases that may be vacant."""
        for change in changes:
            if change.inferred and change.change is ChangeType.CREATED:
                continue
            key = ObjectName(change.namespace, change.name)
            gap = self._missed_gap(change.change, change.gap_seconds, marked=key in marks)
            self._count(key, change.kind, change.change, change.at, gap)
            self.last_hour.add(key, change.kind, BriefChange.of(change), change.observed_at)
            if change.missed:
                self.missed.append(change)

    def _count(
        self, key: ObjectName, kind: Kind, change: ChangeType, at: datetime, gap: float | None
    ) -> None:
        hour = self._hour(at)
        _hours_of(self._leases, key, hour, _SMALL).add(hour, 1)
        _hours_of(self._changes, (kind, change), hour, _WIDE).add(hour, 1)
        if gap:
            self._add_gap(kind, (at - self._ahead).timestamp(), gap)

    def _missed_gap(self, change: ChangeType, gap: float | None, *, marked: bool) -> float | None:
        """Leave out the vacancy of a Lease that was abandoned, or that may be vacant."""
        if change is ChangeType.ACQUIRED and gap and (marked or gap >= self._abandoned_after):
            return None
        return gap

    def _add_gap(self, kind: Kind, until: float, seconds: float) -> None:
        """Add a gap to each hour that it covers, as far back as anybody watched."""
        first = self.watched.first
        hour = int(until) // _SECONDS
        hours = _hours_of(self._gaps, kind, hour, _WIDE)
        since = max(until - seconds, (hour - HOURS) * _SECONDS)
        if first is not None:
            since = max(since, (first - self._ahead).timestamp())
        while until > since:
            start = max(since, hour * _SECONDS)
            hours.add(hour, until - start)
            hour, until = hour - 1, start

    def of(self, key: ObjectName, now: datetime) -> list[int]:
        """Return changes of one Lease per hour, the current hour last."""
        hours = self._leases.get(key)
        return [0] * HOURS if hours is None else list(hours.until(self._hour(now)))

    def totals(self, now: datetime, *, hours: int = HOURS) -> dict[ObjectName, int]:
        """Return the number of changes in the last `hours`, the current one included, for each
        Lease that had any."""
        hour = self._hour(now)
        sums = {k: sum(kept.until(hour)[-hours:]) for k, kept in self._leases.copy().items()}
        return {key: number for key, number in sums.items() if number}

    def of_kind(self, kind: Kind, changes: Iterable[ChangeType], now: datetime) -> list[int]:
        """Return changes of these types to Leases of a kind per hour, the current hour last."""
        rows = [
            hours.until(self._hour(now))
            for change in changes
            if (hours := self._changes.get((kind, change))) is not None
        ]
        return [int(sum(numbers)) for numbers in zip(*rows, strict=True)] or [0] * HOURS

    def gap_seconds(self, kind: Kind, now: datetime) -> float:
        """Return the seconds of all ended gaps in these hours, over all Leases of a kind."""
        hours = self._gaps.get(kind)
        return 0.0 if hours is None else sum(hours.until(self._hour(now)))

    def forget(self, now: datetime) -> None:
        """Drop the Leases whose last change is a day old."""
        oldest = self._hour(now) - HOURS
        for key in [key for key, hours in self._leases.items() if hours.newest <= oldest]:
            del self._leases[key]
        self.last_hour.forget(now)

    def read(self, cluster: str, now: datetime) -> None:
        self.watched.read(cluster, now)
        marks = load_marks(cluster)
        day = models.ChangeRecord.objects.filter(cluster=cluster, at__gte=now - HOURS * HOUR)
        seen = day.exclude(change=ChangeType.CREATED.value, inferred=True).order_by("-at")
        few = ("namespace", "name", "kind", "change", "at", "gap_seconds", "holder")
        newest_first: list[tuple[ObjectName, Kind, BriefChange]] = []
        for namespace, name, kind, change, at, gap, holder in seen.values_list(*few)[:_MAX_READ]:
            key = ObjectName(namespace, name)
            what, known_kind = stored_change(change), stored_kind(kind)
            if what is None:
                continue
            missed = self._missed_gap(what, gap, marked=key in marks)
            self._count(key, known_kind, what, at, missed)
            if at >= now - HOUR:
                brief = BriefChange(what, at, from_stored(holder), gap)
                newest_first.append((key, known_kind, brief))
        for key, known_kind, brief in reversed(newest_first):
            self.last_hour.add(key, known_kind, brief, now)
        missing = seen.filter(missed__gt=0).values_list(*FIELDS)
        self.missed.extendleft(map(to_change, missing[:MISSING]))

    def _hour(self, moment: datetime) -> int:
        return int((moment - self._ahead).timestamp()) // _SECONDS


def _moved_change(change: Change, by: timedelta) -> Change:
    at, observed_at = moved(change.at, by), moved(change.observed_at, by)
    return msgspec.structs.replace(change, at=at, observed_at=observed_at)
