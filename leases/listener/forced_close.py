"""A connection that is closed in the end, whether or not its client reads what is left."""

from __future__ import annotations

import asyncio
from typing import Any, cast

FLUSH_SECONDS = 5.0


class ClosingTransport:
    """A transport whose `close` waits a while for the client to read, and not for ever.

    What is not defined here is the transport's own.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        if self._transport.get_write_buffer_size():
            self._loop.call_later(FLUSH_SECONDS, self._transport.abort)
        self._transport.close()

    def read_at_most(self, size: int) -> None:
        """Read so much at once: what comes in one piece is parsed while everybody else waits."""
        if hasattr(self._transport, "max_size"):  # asyncio's own of a plain socket; TLS has none
            self._transport.max_size = size
