"""Raise errors of a timer in the watch's task; the event loop would only log them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class TimerErrors:
    """Of one watch; its timers call `run`."""

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
