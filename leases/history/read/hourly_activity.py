"""Changes per hour over the last 24 hours, by Lease and by kind, kept in memory for the pages.

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

from leases import models
from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.abandoned import DEFAULT_ABANDONED_AFTER
from leases.domain.past.flapping import BriefChange
from leases.domain.steady_clock import Jump, moved
from leases.history.change_row import FIELDS, to_change
from leases.history.database_text import from_stored
from leases.history.read.last_hour import LastHour
from leases.history.read.watched_lately import WatchedLately
from leases.history.vacancy_marks import load_marks

K = TypeVar("K")
HOURS = 24
HOUR = timedelta(hours=1)
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
        self.missed = deque((_moved(one, by) for one in self.missed), MISSING)

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
            missed = self._missed_gap(ChangeType(change), gap, marked=key in marks)
            self._count(key, Kind(kind), ChangeType(change), at, missed)
            if at >= now - HOUR:
                brief = BriefChange(ChangeType(change), at, from_stored(holder), gap)
                newest_first.append((key, Kind(kind), brief))
        for key, known_kind, brief in reversed(newest_first):
            self.last_hour.add(key, known_kind, brief, now)
        missing = seen.filter(missed__gt=0).values_list(*FIELDS)
        self.missed.extendleft(map(to_change, missing[:MISSING]))

    def _hour(self, moment: datetime) -> int:
        return int((moment - self._ahead).timestamp()) // _SECONDS


def _moved(change: Change, by: timedelta) -> Change:
    at, observed_at = moved(change.at, by), moved(change.observed_at, by)
    return msgspec.structs.replace(change, at=at, observed_at=observed_at)
