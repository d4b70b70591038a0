"""A watch that is open before the list it goes on from is complete.

The API server keeps the last 100,000 events or so: in the largest clusters those of a few seconds,
less than it takes to list them. So what comes meanwhile is read and waits here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from leases.kube.client import LeaseClient
from leases.wire.events import WatchEvent
from leases.wire.status import ApiError

logger = logging.getLogger(__name__)


class Ahead:
    """Reads a watch into memory until somebody follows it."""

    def __init__(self, readings: AsyncIterator[Sequence[WatchEvent]]) -> None:
        self._readings = readings
        self._waiting: deque[Sequence[WatchEvent]] = deque()
        self._followed = False
        self._reading = asyncio.create_task(self._read())

    @property
    def waits(self) -> bool:
        """Whether anything has been read that was not followed yet."""
        return bool(self._waiting)

    async def follow(self) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """What waits, then what comes. Raises ApiError where the watch broke."""
        self._followed = True
        while self._waiting:
            yield self._waiting.popleft()
            await asyncio.sleep(0)
        await self._reading
        while self._waiting:
            yield self._waiting.popleft()
        async for events in self._readings:
            yield events

    async def close(self) -> None:
        """Read no more."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        while not self._followed:
            events = await anext(self._readings, None)
            if events is None:
                return
            self._waiting.append(events)


@contextlib.asynccontextmanager
async def watch_ahead(
    client: LeaseClient, since: str, *, timeout_seconds: int
) -> AsyncIterator[Ahead | None]:
    """A watch that is read from now on; None if it cannot be opened, which is for later to tell."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            readings = await stack.enter_async_context(
                client.watch(since, timeout_seconds=timeout_seconds)
            )
        except ApiError as error:
            logger.info("no watch beside the list: %s", error)
            yield None
            return
        ahead = Ahead(readings)
        stack.push_async_callback(ahead.close)
        yield ahead
