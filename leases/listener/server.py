"""uvicorn's server on our own listening sockets, which accepts even without free files."""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from types import FrameType

import uvicorn
from uvicorn.server import ServerState

from leases.listener.limits import Connections, Limits, Unread

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
        self.unread = Unread()


class ListeningServer(uvicorn.Server):
    """Accepts connections itself.

    Without free files, asyncio's server logs thousands of lines a second, and it counts nothing.
    """

    server_state: ListeningState
    look_seconds = 1.0

    def __init__(
        self, config: uvicorn.Config, limits: Limits, *, name: str, failed: Failed = log_failure
    ) -> None:
        super().__init__(config)
        self.server_state = ListeningState(limits)
        self._acceptor = Acceptor(name, self.server_state.book, self.welcome, failed=failed)
        self._accepting: list[asyncio.Task[None]] = []
        self._look = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        # Runs the lifespan; uvicorn gets no socket to accept from.
        await super().startup(sockets=[])
        for listener in sockets or []:
            listener.listen(BACKLOG)
            listener.setblocking(False)
            task = asyncio.create_task(self._acceptor.run(listener), name="accept connections")
            self._accepting.append(task)

    async def main_loop(self) -> None:
        """Look once a second, which the Date header needs, and at once when asked to.

        uvicorn looks ten times a second, whether anything happens or not.
        """
        while True:
            self._look.clear()
            if await self.on_tick(0):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.look_seconds):
                    await self._look.wait()

    def look_now(self) -> None:
        """See at once whether to end. A signal handler may call it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._look.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.look_now()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)
        await asyncio.sleep(0)  # connections that were closed last let go of their sockets

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
