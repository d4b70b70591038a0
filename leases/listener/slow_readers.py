"""Limit how long a client may leave our output unread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Stall:
    """Calls `cut` if `end` is not called within `seconds` after `begin`."""

    def __init__(self, cut: Callable[[], None], seconds: float) -> None:
        self._cut = cut
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._cut)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
