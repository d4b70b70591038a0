"""How fast evidence may be asked for: it must never be in the way of the watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

AT_ONCE = 5
PER_SECOND = 20


class RequestPace:
    """Lets AT_ONCE requests run at a time, and PER_SECOND of them start in any second."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)
        self._free_at = 0.0  # by the event loop's clock: when the next request may start
        self._held_until = 0.0

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a place and for the moment to start; leave it after the answer."""
        async with self._places:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(self.next_start(now) - now)
            yield

    def next_start(self, now: float) -> float:
        """Reserve the moment at which one more request may start."""
        start = max(now, self._free_at, self._held_until)
        self._free_at = start + 1 / PER_SECOND
        return start

    def hold(self, seconds: float) -> None:
        """Start nothing for so long: the server is overloaded."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + seconds)

    def held_for(self) -> float:
        """Return how many seconds the server still wants to be left alone."""
        return max(0.0, self._held_until - asyncio.get_running_loop().time())
