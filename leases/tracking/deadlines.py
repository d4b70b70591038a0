"""When the next phase turns: nobody else tells us that a Lease ran out.

A heap of (when, entry) in which an entry that comes too early is left to fire and armed again, so
that a renewal, which only moves a deadline away, touches no heap. No step looks at all Leases.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import Generic, TypeVar

import msgspec

from leases.domain.lease import ObjectName


class Alarm(msgspec.Struct, kw_only=True, gc=False):
    """One Lease's place in the heap: `armed` is when it fires, not before its deadline is."""

    key: ObjectName
    armed: datetime | None = None


AnyAlarm = TypeVar("AnyAlarm", bound=Alarm)


class Deadlines(Generic[AnyAlarm]):
    """The alarms of one cluster's Leases."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, AnyAlarm]] = []
        self._number = count()

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, alarm: AnyAlarm, when: datetime | None) -> None:
        """Let it fire at `when` or before. Fires early rather than move an entry in the heap."""
        if when is None or (alarm.armed is not None and alarm.armed <= when):
            return
        alarm.armed = when
        heapq.heappush(self._heap, (when, next(self._number), alarm))

    def disarm(self, alarm: AnyAlarm) -> None:
        """Forget it; its entry is dropped when its time comes."""
        alarm.armed = None

    def next(self) -> datetime | None:
        """The earliest moment at which an alarm may fire."""
        while self._heap and self._heap[0][2].armed != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: datetime) -> Iterator[AnyAlarm]:
        """Every alarm that fires by `now`, disarmed; arm it again if its deadline is to come."""
        while (when := self.next()) is not None and when <= now:
            alarm = heapq.heappop(self._heap)[2]
            alarm.armed = None
            yield alarm
