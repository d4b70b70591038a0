"""A connection to a stranger: its bytes are bounded, and leaving the block ends it.

A client library gets one end of a pair of sockets. Between that and the stranger we pass the bytes
on and count them, so the bound holds for every library, whatever it reads ahead or skips, and
before TLS. A limit of time belongs around all of it: whoever cancels leaves no socket and no
thread. Only the look-up of the name may go on in its own thread.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator

from aiohappyeyeballs import start_connection

from leases.worker_threads import NameLookups

CONNECT_SECONDS = 5.0
READ = 64 * 1024  # bytes
NEXT_ADDRESS = 0.25  # seconds until another address is tried beside the first
_names = NameLookups("receiver-names")


class CannotConnect(OSError):
    """There is no connection: `strerror` says why, in the words of the system."""


class BoundedConnection:
    """`socket` is for a client library, which closes it."""

    def __init__(self, stranger: socket.socket, most: int) -> None:
        self._stranger = stranger
        self._most = most
        self.socket, self._passing = socket.socketpair()
        for one in (self.socket, self._passing):
            one.setblocking(False)
        self.own_address: str = stranger.getsockname()[0]
        self.too_much = False  # it sent more bytes than may come

    async def pass_in(self) -> None:
        loop, left = asyncio.get_running_loop(), self._most
        with contextlib.suppress(OSError):
            while data := await loop.sock_recv(self._stranger, READ):
                left -= len(data)
                if left < 0:
                    self.too_much = True
                    break
                await loop.sock_sendall(self._passing, data)
        with contextlib.suppress(OSError):
            self._passing.shutdown(socket.SHUT_WR)

    async def pass_out(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await loop.sock_recv(self._passing, READ):
                await loop.sock_sendall(self._stranger, data)
            self._stranger.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._passing.close()
        self._stranger.close()


@contextlib.asynccontextmanager
async def bounded(host: str, port: int, *, most: int) -> AsyncIterator[BoundedConnection]:
    """Connect; after `most` bytes from there, the library sees the end. Raises CannotConnect."""
    connection = BoundedConnection(await _connect(host, port), most)
    passing = [
        asyncio.create_task(connection.pass_in()),
        asyncio.create_task(connection.pass_out()),
    ]
    try:
        yield connection
    finally:
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)
        connection.close()


async def _connect(host: str, port: int) -> socket.socket:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await _names.find(host, port)
    except TimeoutError as error:
        raise CannotConnect(0, "the name service does not answer") from error
    except (OSError, OverflowError, UnicodeError) as error:
        raise CannotConnect(0, "its name is not known") from error
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await start_connection(found, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1)
    except TimeoutError as error:
        raise CannotConnect(0, f"no connection within {CONNECT_SECONDS:.0f} s") from error
    except OSError as error:
        raise CannotConnect(0, _told(error)) from error


def _told(error: OSError) -> str:
    """The system's own words: those of asyncio hold the address."""
    return os.strerror(error.errno) if error.errno else type(error).__name__
