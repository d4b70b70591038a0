"""The timer of one watch: it fires at the next deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

MAX_WAIT = 1.0  # seconds: timers stand still while the machine sleeps


class DeadlineTimer:
    """One timer; an earlier deadline moves it."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._due: datetime | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._planned: datetime | None = None

    def plan(self, due: datetime, now: datetime, *, at_least: float) -> None:
        """Look at `due`, and no sooner than after so many seconds."""
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
        """When the look of now should have been; asked once."""
        planned, self._planned = self._planned, None
        return planned

    def forget(self) -> None:
        """The clock was set: what was planned tells nothing, and the timer is to be set anew."""
        self.stop()
        self._planned = None
