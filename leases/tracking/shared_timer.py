"""One timer of the process for all clusters: it wakes those whose deadlines are due, and those
that have collected renewals to tell. A cluster in which nothing is due is not woken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from leases.domain.steady_clock import EARLIEST, plus
from leases.tracking.deadlines import STALL

MAX_WAIT = timedelta(seconds=1)  # timers stop while the machine sleeps
BETWEEN_BEATS = timedelta(milliseconds=10)  # what is due meanwhile shares the next one
COALESCE = 0.25  # seconds in which renewals are collected into one update

Wake = Callable[[], None]


class SharedTimer:
    """Lives on the event loop."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._waiting: dict[DeadlineTimer, datetime] = {}  # with when it is due
        self._at: datetime | None = None  # of the next beat
        self._earliest = EARLIEST  # that it may be
        self._timer: asyncio.TimerHandle | None = None
        self._collecting: dict[Wake, None] = {}

    def wait(self, timer: DeadlineTimer, due: datetime, now: datetime) -> None:
        """Wake this timer at `due`."""
        self._waiting[timer] = due
        if self._at is None or max(due, self._earliest) < self._at:
            self._plan(due, now)

    def forget(self, timer: DeadlineTimer) -> None:
        """Do not wake it."""
        self._waiting.pop(timer, None)

    def begin_anew(self) -> None:
        """The clock was set: the plan is void."""
        self._at, self._earliest = None, EARLIEST

    def collect(self, wake: Wake) -> None:
        """Call this within COALESCE, with all others that collect."""
        if not self._collecting:
            asyncio.get_running_loop().call_later(COALESCE, self._tell)
        self._collecting[wake] = None

    def drop(self, wake: Wake) -> None:
        """Do not call it."""
        self._collecting.pop(wake, None)

    def _tell(self) -> None:
        woken, self._collecting = self._collecting, {}
        for wake in woken:
            asyncio.get_running_loop().call_soon(wake)  # one that fails stops no other

    def _plan(self, due: datetime, now: datetime) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at = min(max(due, now, self._earliest), now + MAX_WAIT)
        delay = (self._at - now).total_seconds()
        self._timer = asyncio.get_running_loop().call_later(delay, self._beat)

    def _beat(self) -> None:
        now = self._clock()
        late = self._at is not None and now - self._at > STALL
        self._at = self._timer = None
        self._earliest = plus(now, BETWEEN_BEATS)
        woken = [timer for timer, due in self._waiting.items() if late or due <= now]
        for timer in woken:
            del self._waiting[timer]
            asyncio.get_running_loop().call_soon(timer.fire)
        if self._waiting:
            self._plan(min(self._waiting.values()), now)
            for timer in self._waiting:
                timer.planned = self._at


class DeadlineTimer:
    """That of one cluster. `planned` is when the process next looks at it, due or not."""

    def __init__(self, timers: SharedTimer, wake: Wake) -> None:
        self._timers = timers
        self._wake = wake
        self._due: datetime | None = None
        self.planned: datetime | None = None

    def plan(self, due: datetime, now: datetime, *, at_least: timedelta) -> None:
        """Fire at `due`, but not before `at_least` from now."""
        if self._due is not None and self._due <= due and not at_least:
            return
        self._due = due
        due = max(due, now + at_least)
        self.planned = min(due, now + MAX_WAIT)
        self._timers.wait(self, due, now)

    def fire(self) -> None:
        if self._due is not None:
            self._wake()

    def stop(self) -> None:
        self._due = None
        self._timers.forget(self)

    def overdue(self, now: datetime) -> bool:
        """Whether it should have been looked at so long ago that the process stood still."""
        return self.planned is not None and now - self.planned > STALL

    def take_planned(self) -> datetime | None:
        """Return, once, when this call should have happened."""
        planned, self.planned = self.planned, None
        return planned

    def forget(self) -> None:
        """Cancel the timer and the plan: the clock was set."""
        self.stop()
        self.planned = None
        self._timers.begin_anew()
