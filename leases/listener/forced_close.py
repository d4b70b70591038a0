"""Close a connection for sure, whether or not its client reads the rest."""

from __future__ import annotations

import asyncio
from typing import Any, cast

FLUSH_SECONDS = 5.0


class ClosingTransport:
    """A transport whose `close` waits for the client only for a while.

    It passes everything else to the wrapped transport.
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
        """Limit one read: a piece is parsed while everybody else waits."""
        # asyncio's own transport of a plain socket; TLS has none
        if hasattr(self._transport, "max_size"):
            self._transport.max_size = size
