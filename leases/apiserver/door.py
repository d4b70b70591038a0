"""One port for http and https: a connection that begins as TLS does is one, any other is plain.

kubectl and every client-go program send a bearer token over TLS only (client-go
tools/clientcmd/client_config.go, IsConfigTransportTLS); scripts and tests like it plain.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable

logger = logging.getLogger(__name__)

HANDSHAKE = b"\x16"  # the first byte of a TLS ClientHello, and of no HTTP request
PATIENCE = 10.0  # seconds that a client may take to say its first byte, or to shake hands
AFTER_FAILURE = 0.1  # seconds; out of file descriptors, say


class Door:
    """Admits connections at a listening, non-blocking socket until closed."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        *,
        backlog: int,
    ) -> None:
        listener.listen(backlog)
        self._listener = listener
        self._protocol = protocol
        self._context = context
        self._admissions: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    async def close(self) -> None:
        """Admit nobody else; who is inside stays."""
        tasks = [self._accepting, *self._admissions]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                logger.warning("The Lease API cannot accept a connection: %s", error)
                await asyncio.sleep(AFTER_FAILURE)
                continue
            task = asyncio.create_task(self._admit(connection))
            self._admissions.add(task)
            task.add_done_callback(self._admissions.discard)

    async def _admit(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(PATIENCE):
                first = await _peek(connection)
                await loop.connect_accepted_socket(
                    self._protocol,
                    connection,
                    ssl=self._context if first == HANDSHAKE else None,
                )
        except (OSError, TimeoutError):  # it went away, or never spoke our language
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


async def _peek(connection: socket.socket) -> bytes:
    """The first byte, left where it is; empty when the client has closed."""
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(BlockingIOError):
            return connection.recv(1, socket.MSG_PEEK)
        readable = loop.create_future()
        loop.add_reader(connection, readable.set_result, None)
        try:
            await readable
        finally:
            loop.remove_reader(connection)
