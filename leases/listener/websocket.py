"""A WebSocket: uvicorn's protocol, counted, and closed if its client does not read.

Private parts of uvicorn: `frames`, `read_paused`, `writable` and `keepalive_timeout`; see
`leases.listener.protocol`.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from leases.listener.forced_close import ClosingTransport, Stall
from leases.listener.limits import KIB
from leases.listener.server import ListeningState

MAX_FRAMES = 64  # per message: a browser sends one
READ_BYTES = 4 * KIB  # per read: hundreds of small frames would block the others
MAX_PINGS, PING_SECONDS = 20, 10.0


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """Buffers unread output for `stall_seconds`, and reads nothing meanwhile."""

    def __init__(self, config: Config, server_state: ListeningState, **more: Any) -> None:
        super().__init__(config, server_state, **more)
        self.book = server_state.book
        self.pings, self.pings_since = 0, self.loop.time()
        self.stall = Stall(self.cut, self.book.limits.stall_seconds)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast("ClosingTransport", transport).read_at_most(READ_BYTES)
        self.book.upgrade(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.stall.end()
        self.book.end(self)
        super().connection_lost(exc)

    def cut(self) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()
        self.stall.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stall.end()
        if not self.read_paused:
            self.transport.resume_reading()

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.writable.is_set() and not self.disconnected:
            self.transport.pause_reading()
        return message

    def handle_ping(self) -> None:
        """Browsers send no pings; programs send one in many seconds."""
        now = self.loop.time()
        if now - self.pings_since > PING_SECONDS:
            self.pings_since, self.pings = now, 0
        self.pings += 1
        if self.pings > MAX_PINGS:
            self.cut()
        else:
            super().handle_ping()

    def handle_cont(self, event: Frame) -> None:
        super().handle_cont(event)
        if len(self.frames) > MAX_FRAMES:
            self.cut()
