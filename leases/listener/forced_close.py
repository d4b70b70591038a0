"""Close a connection for sure, even if its client does not read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
