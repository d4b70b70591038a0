"""Split long work on the event loop into slices."""

from __future__ import annotations

import asyncio
from time import thread_time

SLICE = 0.0005  # seconds of work after which other tasks run


class Slices:
    """Measures the work of one task since it last yielded to others.

    It counts the thread's CPU time: if other threads kept it from working, the task need not yield
    again so soon.
    """

    def __init__(self) -> None:
        self._began = thread_time()

    async def end(self) -> None:
        """Yield to other tasks if this slice was long enough. Call it between two steps."""
        if thread_time() - self._began > SLICE:
            await asyncio.sleep(0)
            self._began = thread_time()
