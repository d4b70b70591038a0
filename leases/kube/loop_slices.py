"""Long work on the event loop, cut into slices."""

from __future__ import annotations

import asyncio
from time import thread_time

SLICE = 0.0005  # seconds of work after which others get their turn


class Slices:
    """Counts the work of one task since it last let others go.

    It is the thread's own time: while threads keep it from working, the task must not wait for a
    turn of its own after every few steps as well.
    """

    def __init__(self) -> None:
        self._began = thread_time()

    async def end(self) -> None:
        """Let others go first, if this slice was long enough. For between two steps."""
        if thread_time() - self._began > SLICE:
            await asyncio.sleep(0)
            self._began = thread_time()
