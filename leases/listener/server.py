"""uvicorn's server on our own listening sockets, with limited connections."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from uvicorn.server import ServerState

from leases.listener.accept_connections import Acceptor, Failed, log_failure
from leases.listener.connections import Connections
from leases.listener.limits import Limits

BACKLOG = 1024  # connections that the kernel queues


def listen(host: str, port: int) -> socket.socket:
    """Return a bound, listening socket; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


class ListeningState(ServerState):
    """The state that uvicorn's protocols share, with our connection counts."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.book = Connections(limits)


class ListeningServer(uvicorn.Server):
    """Accepts connections itself.

    Without free files, asyncio's server logs thousands of lines a second, and it counts nothing.
    """

    server_state: ListeningState

    def __init__(
        self, config: uvicorn.Config, limits: Limits, *, name: str, failed: Failed = log_failure
    ) -> None:
        super().__init__(config)
        self.server_state = ListeningState(limits)
        self._acceptor = Acceptor(name, self.server_state.book, self.welcome, failed=failed)
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Runs the lifespan; uvicorn gets no socket to accept from.
        await super().startup(sockets=[])
        for listener in sockets or []:
            listener.listen(BACKLOG)
            listener.setblocking(False)
            task = asyncio.create_task(self._acceptor.run(listener), name="accept connections")
            self._accepting.append(task)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    async def welcome(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self.protocol, connection)
        except OSError:
            connection.close()

    def protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        return made
