"""Accept connections, even when the process has no free file descriptor."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Awaitable, Callable

from leases.listener.connections import Connections

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1
LOG_SECONDS = 60.0
# The client is gone already: the next one may be waiting.
_GONE = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.EINTR})
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"retry-after: 10\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
)
_FULL_TEXT = b"Too many connections are open. Try again in a few seconds.\n"


# Called on the event loop with the name of the failed task and its error.
Failed = Callable[[str, Exception], None]


def log_failure(task: str, error: Exception) -> None:
    """For a port without a supervisor."""
    logger.error("The task %s failed on an unexpected error and goes on", task, exc_info=error)


class Acceptor:
    """Passes each connection of one listening socket to `welcome`."""

    def __init__(
        self,
        name: str,
        connections: Connections,
        welcome: Callable[[socket.socket], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.monotonic,
        failed: Failed = log_failure,
    ) -> None:
        self._name = name
        self._connections = connections
        self._welcome = welcome
        self._clock = clock
        self._failed = failed
        self._logged_at = float("-inf")

    async def run(self, listener: socket.socket) -> None:
        while True:
            try:
                await self._accept(listener)
            except Exception as error:
                self._failed("accept", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            await _has_connection(listener)
            return
        except OSError as error:
            await self._wait(error)
            return
        try:
            if self._connections.has_room():
                await self._welcome(connection)
                return
        except BaseException:
            connection.close()
            raise
        self._log("has too many open connections and refuses new ones")
        _refuse(connection)

    async def _wait(self, error: OSError) -> None:
        """Close the oldest idle connection, and try again a little later."""
        if error.errno in _GONE:
            await asyncio.sleep(0)
            return
        self._connections.make_room()
        self._log(f"cannot take a connection and tries again: {error.strerror or error}")
        await asyncio.sleep(RETRY_SECONDS)

    def _log(self, what: str) -> None:
        """Log at most once a minute: every connection meets the same problem."""
        if self._clock() - self._logged_at >= LOG_SECONDS:
            self._logged_at = self._clock()
            logger.warning("%s %s", self._name, what)


async def _has_connection(listener: socket.socket) -> None:
    """Wait for the next connection. asyncio's `sock_accept` can lose one when it is cancelled."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(listener, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listener)


def _refuse(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setblocking(False)
        connection.send(_FULL % (len(_FULL_TEXT), _FULL_TEXT))
        connection.shutdown(socket.SHUT_WR)
    connection.close()
