"""The timer of one watch, which fires at the next deadline, and the errors of its work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

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


class TimerErrors:
    """Raises errors of timers in the task of the watch; the event loop would only log them."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._error: Exception | None = None

    @contextmanager
    def raised_here(self) -> Iterator[None]:
        """While this runs in a task, errors of timers are raised here."""
        self._error = None
        self._task = task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if self._error is None or (task is not None and task.uncancel() > 0):
                raise
            raise self._error from None
        finally:
            self._task = None

    def run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            if self._task is None or self._error is not None:
                raise
            self._error = error
            self._task.cancel()
