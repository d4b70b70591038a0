"""When the next phase turns: nobody else tells us that a Lease ran out.

Alarms wait in short spans of time, and an alarm that comes too early is left to fire and armed
again: a renewal, which only moves a deadline away, touches nothing. An alarm fires when its span
begins, so up to SPAN before its time; armed again for the same span it waits in a heap and fires
exactly. No step looks at all Leases.
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
    """One Lease's place among the deadlines: `armed` is when it fires, not after its deadline."""

    key: ObjectName
    armed: datetime | None = None


AnyAlarm = TypeVar("AnyAlarm", bound=Alarm)


class Deadlines(Generic[AnyAlarm]):
    """The alarms of one cluster's Leases."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all of them; who owns an alarm forgets when it is armed."""
        # By its number, when each begins and what is armed for then.
        self._spans: dict[int, tuple[datetime, list[AnyAlarm]]] = {}
        self._order: list[int] = []  # a heap of the spans' numbers
        self._begun = -1  # the last span that fires
        self._heap: list[tuple[datetime, int, AnyAlarm]] = []
        self._number = count()

    def __len__(self) -> int:
        return len(self._heap) + sum(len(span) for _, span in self._spans.values())

    def arm(self, alarm: AnyAlarm, when: datetime | None) -> None:
        """Let it fire at `when` or before. Fires early rather than move an entry."""
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
        alarm.armed = span[0]  # one for all of them
        span[1].append(alarm)

    def disarm(self, alarm: AnyAlarm) -> None:
        """Forget it; its entry is dropped when its time comes."""
        alarm.armed = None

    def next(self) -> datetime | None:
        """The earliest moment at which an alarm may fire."""
        heap = self._heap
        while heap and heap[0][2].armed is not heap[0][0]:
            heapq.heappop(heap)
        exact = heap[0][0] if heap else None
        if not self._drop_stale():
            return exact
        begins, _ = self._spans[self._order[0]]
        return begins if exact is None else min(begins, exact)

    def due(self, now: datetime) -> Iterator[AnyAlarm]:
        """Every alarm that fires by `now`, disarmed; arm it again if its deadline is to come."""
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
        """Forget what is armed no more or for another time; whether a span waits."""
        while self._order:
            begins, span = self._spans[self._order[0]]
            while span:
                if span[-1].armed is begins:
                    return True
                span.pop()
            del self._spans[heapq.heappop(self._order)]
        return False
