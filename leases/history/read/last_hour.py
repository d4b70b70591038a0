"""The changes of the last hour by Lease, kept in memory: what shows whether a Lease flaps."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.flapping import FEWEST, BriefChange
from leases.domain.steady_clock import Jump, moved

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
