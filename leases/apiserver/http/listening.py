"""One port for HTTP and HTTPS: the first byte of a connection tells which.

Programs of our own speak plain HTTP on loopback; kubectl and client-go send a token over TLS only.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn

from leases.apiserver.failing import Failed
from leases.apiserver.http.protocol import Protocol
from leases.listener.limits import Limits
from leases.listener.server import ListeningServer

KEEP_ALIVE = 180
SHUTDOWN = 2
_TLS_HANDSHAKE = b"\x16"
_FIRST_BYTE_WITHIN = 60


class Server(ListeningServer):
    """The port of the Lease API. It leaves signals to the process that runs it."""

    def __init__(self, app: Any, limits: Limits, tls: ssl.SSLContext, failed: Failed) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=SHUTDOWN,
        )
        super().__init__(config, limits, name="The Lease API", failed=failed)
        self.ready = asyncio.Event()
        self._tls = tls
        self._welcoming: set[Newcomer] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        tasks = [newcomer.task for newcomer in self._welcoming]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().shutdown(sockets)

    async def welcome(self, connection: socket.socket) -> None:
        """Wait for the first byte in a task, so that other connections are accepted meanwhile."""
        newcomer = Newcomer(asyncio.create_task(self._hand_over(connection)))
        self._welcoming.add(newcomer)
        book = self.server_state.book
        book.begin(newcomer)

        def leave(_: asyncio.Task[None]) -> None:
            self._welcoming.discard(newcomer)
            book.end(newcomer)

        newcomer.task.add_done_callback(leave)

    async def _hand_over(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(_FIRST_BYTE_WITHIN):
                first = await _first_byte(connection)
                tls = self._tls if first == _TLS_HANDSHAKE else None
                await loop.connect_accepted_socket(self.protocol, connection, ssl=tls)
        except (OSError, TimeoutError, asyncio.CancelledError) as error:
            connection.close()
            if isinstance(error, asyncio.CancelledError):
                raise

    def protocol(self) -> asyncio.Protocol:
        return Protocol(self.config, self.server_state, app_state=self.lifespan.state)


class Newcomer:
    """A connection before its first byte."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task

    def cut(self) -> None:
        self.task.cancel()


async def _first_byte(connection: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
