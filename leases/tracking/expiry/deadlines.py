"""Find the next phase change: Kubernetes never reports that a Lease expired.

Alarms are grouped into short spans of time. A renewal only postpones a deadline, so it touches
nothing: the alarm fires early and is armed again. It fires up to SPAN early, then waits in a heap
and fires exactly. No step visits all Leases.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Generic, TypeVar

import msgspec

from leases.domain.lease import ObjectName

SPAN = timedelta(milliseconds=125)
_EPOCH = datetime.fromtimestamp(0, UTC)


class Alarm(msgspec.Struct, kw_only=True, gc=False):
    """One Lease's alarm; `armed` is when it fires, never after its deadline."""

    key: ObjectName
    armed: datetime | None = None


AnyAlarm = TypeVar("AnyAlarm", bound=Alarm)


class Deadlines(Generic[AnyAlarm]):
    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all alarms. The owner resets `armed`."""
        # Span number -> when it begins, and the alarms in it.
        self._spans: dict[int, tuple[datetime, list[AnyAlarm]]] = {}
        self._order: list[int] = []  # a heap of span numbers
        self._begun = -1  # the last span that has begun
        self._heap: list[tuple[datetime, int, AnyAlarm]] = []
        self._number = count()

    def __len__(self) -> int:
        return len(self._heap) + sum(len(span) for _, span in self._spans.values())

    def arm(self, alarm: AnyAlarm, when: datetime | None) -> None:
        """Let an alarm fire at `when` or earlier. An earlier alarm stays."""
        if when is None or (alarm.armed is not None and alarm.armed <= when):
            return
        number = (when - _EPOCH) // SPAN
        if number <= self._begun:
            alarm.armed = when
            heapq.heappush(self._heap, (when, next(self._number), alarm))
            return
        span = self._spans.get(number)
        if span is None:
            span = self._spans[number] = (_EPOCH + number * SPAN, [])
            heapq.heappush(self._order, number)
        alarm.armed = span[0]  # one object, shared by all of them
        span[1].append(alarm)

    def disarm(self, alarm: AnyAlarm) -> None:
        """Cancel it. Its entry is dropped when its time comes."""
        alarm.armed = None

    def next(self) -> datetime | None:
        """Return the earliest time at which an alarm may fire."""
        heap = self._heap
        while heap and heap[0][2].armed is not heap[0][0]:
            heapq.heappop(heap)
        exact = heap[0][0] if heap else None
        if not self._drop_stale():
            return exact
        begins, _ = self._spans[self._order[0]]
        return begins if exact is None else min(begins, exact)

    def due(self, now: datetime) -> Iterator[AnyAlarm]:
        """Yield and disarm every alarm that fires by `now`; the caller arms early ones again."""
        while (when := self.next()) is not None and when <= now:
            if self._heap and self._heap[0][0] <= when:
                alarm = heapq.heappop(self._heap)[2]
                alarm.armed = None
                yield alarm
                continue
            number = self._order[0]
            self._begun = max(self._begun, number)
            begins, span = self._spans[number]
            while span:
                alarm = span.pop()
                if alarm.armed is begins:
                    alarm.armed = None
                    yield alarm

    def _drop_stale(self) -> bool:
        """Drop cancelled and moved entries. Returns whether a span waits."""
        while self._order:
            begins, span = self._spans[self._order[0]]
            while span:
                if span[-1].armed is begins:
                    return True
                span.pop()
            del self._spans[heapq.heappop(self._order)]
        return False
