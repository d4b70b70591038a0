"""Wait for an event of the event loop, but not for ever."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def is_set(event: asyncio.Event, *, within: float) -> bool:
    """Wait for an event up to `within` seconds. Returns whether it is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
