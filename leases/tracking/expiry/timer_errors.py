"""Errors of a timer's work: the event loop would swallow them, so the watch's task raises them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class TimerErrors:
    """Of one watch: `run` is what its timers call."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._error: Exception | None = None

    @contextmanager
    def raised_here(self) -> Iterator[None]:
        """While this goes on in a task, what a timer raises is raised here."""
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
        """Do a timer's work."""
        try:
            work()
        except Exception as error:
            if self._task is None or self._error is not None:
                raise
            self._error = error
            self._task.cancel()
