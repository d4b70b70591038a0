"""Limit the log lines that refused requests cause: strangers can send thousands a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

MAX_LINES = 20
WINDOW_SECONDS = 60.0


class FloodFilter(logging.Filter):
    """Lets through MAX_LINES a minute of each of Django's loggers of refused requests, and then
    says how many it left out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._windows: dict[str, tuple[float, int]] = {}  # since when, how many lines

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("django.security."):
            return True
        with self._lock:
            now = self._clock()
            since, lines = self._windows.get(record.name, (now, 0))
            left_out = max(0, lines - MAX_LINES)
            if now - since >= WINDOW_SECONDS:
                since, lines = now, 0
            self._windows[record.name] = (since, lines + 1)
        if lines == 0 and left_out:
            record.msg = f"{record.getMessage()} ({left_out} more like it were not logged)"
            record.args = ()
        return lines < MAX_LINES
