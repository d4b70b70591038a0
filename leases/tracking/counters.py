"""Counters of one cluster's watch since the start.

Only the event loop writes; any thread may read.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import msgspec

from leases.domain.cause.incident import Cause
from leases.domain.changes.change import HOLDER_CHANGES, Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.tracking.tracked_lease import Tracked, Update


class ElectionCounters(msgspec.Struct, gc=False):
    holder_changes: int = 0
    unheld_seconds: float = 0.0  # of the gaps that have ended


class Counters:
    """Counts events as they arrive, and changes as they are emitted."""

    def __init__(self) -> None:
        self.events = 0
        self.bookmarks = 0
        self.lists: Counter[str] = Counter()  # by the reason for the list
        self.breaks = 0
        self.not_understood = 0
        self.near_misses = 0
        self.incidents: Counter[Cause] = Counter()  # settled ones; counted by who settles them
        self.changes: Counter[tuple[Kind, ChangeType]] = Counter()
        self.elections: dict[ObjectName, ElectionCounters] = {}

    def count(self, update: Update) -> None:
        self.not_understood += len(update.skipped)
        self.near_misses += len(update.late)
        for change in update.changes:
            self.changes[change.kind, change.change] += 1
            if change.kind is Kind.ELECTION:
                self._count_election(change)
        for key in update.removed:
            self.elections.pop(key, None)

    def election(self, tracked: Tracked, now: datetime) -> tuple[int, float]:
        """Return how often the holder changed, and the seconds in which nobody held it."""
        counters = self.elections.get(tracked.key) or ElectionCounters()
        open_gap = (now - tracked.gap_since).total_seconds() if tracked.gap_since else 0.0
        return counters.holder_changes, counters.unheld_seconds + max(0.0, open_gap)

    def _count_election(self, change: Change) -> None:
        key = ObjectName(change.namespace, change.name)
        counters = self.elections.setdefault(key, ElectionCounters())
        if change.change in HOLDER_CHANGES:
            counters.holder_changes += 1 + change.missed
        counters.unheld_seconds += change.gap_seconds or 0.0
