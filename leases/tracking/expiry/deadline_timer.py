"""The timer of one watch. It fires at the next deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

MAX_WAIT = 1.0  # seconds: timers stop while the machine sleeps


class DeadlineTimer:
    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._due: datetime | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._planned: datetime | None = None

    def plan(self, due: datetime, now: datetime, *, at_least: float) -> None:
        """Fire at `due`, but not before `at_least` seconds from now."""
        if self._due is not None and self._due <= due and not at_least:
            return
        self.stop()
        delay = min(max((due - now).total_seconds(), at_least), MAX_WAIT)
        self._timer = asyncio.get_running_loop().call_later(delay, self._look)
        self._planned = now + timedelta(seconds=delay)
        self._due = due

    def stop(self) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take_planned(self) -> datetime | None:
        """Return, once, when this call should have happened."""
        planned, self._planned = self._planned, None
        return planned

    def forget(self) -> None:
        """Cancel the timer and the plan: the clock was set."""
        self.stop()
        self._planned = None
