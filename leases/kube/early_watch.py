"""Open the watch before the list is complete.

The API server keeps only the last 100,000 events or so. In the largest clusters those cover a few
seconds, less than a list takes. So we read the events meanwhile and keep them here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import zlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Container, Sequence

from leases.kube.lease_client import LeaseClient
from leases.kube.loop_slices import Slices
from leases.kube.open_watch import OpenWatch
from leases.wire.status import ApiError
from leases.wire.watch_events import WatchEvent

logger = logging.getLogger(__name__)

PACKED = 128  # lines at a time
REST = 0.1  # seconds between reads while we catch up: kept events go first
FAST = 1  # zlib's level: it packs renewals to a twentieth


class Ahead:
    """Keeps the lines of a watch, compressed, until somebody follows it."""

    def __init__(self, watch: OpenWatch) -> None:
        self._watch = watch
        self._lines = watch.lines()
        self._waiting: deque[tuple[float, bytes]] = deque()  # (time of reading, lines)
        self._following = self._followed = False
        self._reading = asyncio.create_task(self._read())

    def unprocessed_seconds(self) -> float:
        """Return how many seconds the oldest kept line has waited; 0: none waits."""
        return time.monotonic() - self._waiting[0][0] if self._waiting else 0.0

    async def follow(self) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield the kept lines, then new ones. Raises ApiError if the watch broke.

        It keeps reading meanwhile: the server cuts a watch that nobody reads.
        """
        self._following = True
        while self._waiting or not self._reading.done():
            slices = Slices()
            while self._waiting:
                for events in self._watch.events(_unpacked(self._waiting[0][1])):
                    yield events
                    await slices.end()
                self._waiting.popleft()
            self._followed = True
            await asyncio.wait([self._reading])
        await self._reading
        slices = Slices()
        async for lines in self._lines:
            await slices.end()
            for events in self._watch.events(lines):
                yield events
                await slices.end()

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._lines.aclose()

    async def _read(self) -> None:
        while not self._followed:
            lines = await anext(self._lines, None)
            if lines is None:
                return
            slices = Slices()
            for first in range(0, len(lines), PACKED):
                some = b"\n".join(lines[first : first + PACKED])
                self._waiting.append((time.monotonic(), zlib.compress(some, FAST)))
                await slices.end()
            if self._following:
                await asyncio.sleep(REST)


def _unpacked(lines: bytes) -> list[bytes]:
    return zlib.decompress(lines).split(b"\n")


@contextlib.asynccontextmanager
async def watch_ahead(
    client: LeaseClient, since: str, *, timeout_seconds: int, known: Container[int]
) -> AsyncIterator[Ahead | None]:
    """Open a watch and read it from now on. None: it cannot be opened; a later try will say why."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            watch = await stack.enter_async_context(
                client.open_watch(since, timeout_seconds=timeout_seconds, known=known)
            )
        except ApiError as error:
            logger.info("cannot watch while the list is read: %s", error)
            yield None
            return
        ahead = Ahead(watch)
        stack.push_async_callback(ahead.close)
        yield ahead
