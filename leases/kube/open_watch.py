"""One open watch: chunks become events, and silence is asked about."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Iterator, Sequence

import aiohttp
import msgspec

from leases.domain.lease import number_of
from leases.kube.failure_sentences import unreachable
from leases.kube.http_session import READ_BUFFER, Session, Timeouts
from leases.kube.loop_slices import Slices
from leases.kube.response_bytes import arrived_bytes, socket_of
from leases.wire.line_splitter import LineCutter, LineLengthError
from leases.wire.renewal_fingerprints import Reader
from leases.wire.status import ApiError, Gone, Status, TooManyRequests, Unreachable
from leases.wire.watch_events import Unreadable, WatchEvent

# A connection that was cut without a word (NAT, power) fails after 10 + 3 x 5 s.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


AT_ONCE = 64  # events made of a reading before they are followed: what is fresh is read fast
# Seconds between readings: many events that are told together cost half of what they cost alone.
PACE = 0.05


class OpenWatch:
    """Reads the body of one watch.

    `newest` asks the cluster for its present resourceVersion. Asked when the watch is quiet, it
    tells a quiet cluster from a dead one, and one that went back in time from one that waits.
    """

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        *,
        session: Session,
        since: str,
        lasts: float,
        newest: Callable[[], Awaitable[str]],
        known: Container[int] = (),
    ) -> None:
        self._response = response
        self._content = response.content
        self._session = session
        self._limits: Timeouts = session.limits
        self._newest = newest
        self._read = Reader(known).read
        self._version = since
        self._lasts = lasts
        self._heard = self._delivered_until = time.monotonic()
        self._taken = 0  # bytes
        self._delivering = False
        self._arriving = select.poll()
        if (sock := socket_of(response)) is not None:
            self._arriving.register(sock, select.POLLIN)
            _keep_alive(sock)

    def unprocessed_seconds(self) -> float:
        """For how many seconds at most something that arrived has not been told; 0: nothing is."""
        now = time.monotonic()
        if not self._delivering and arrived_bytes(self._response) == self._taken:
            self._delivered_until = now
        return now - self._delivered_until

    async def readings(self) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """The events of each reading until the server ends the watch. Raises ApiError."""
        async with contextlib.aclosing(self.lines()) as readings:
            slices = Slices()
            async for lines in readings:
                await slices.end()  # to have read them took time already
                for events in self.events(lines):
                    yield events
                    await slices.end()

    async def lines(self) -> AsyncGenerator[list[bytes], None]:
        """The lines that each reading completes, to the end of the watch. Raises ApiError."""
        cutter = LineCutter()
        while chunk := await self._next_chunk():
            self._taken += len(chunk)
            self._heard, complete = time.monotonic(), not self._arriving.poll(0)
            try:
                lines = cutter.feed(chunk)
            except LineLengthError as error:
                raise Unreachable(Status(message=f"{self._session.host}: {error}")) from error
            if lines:
                yield lines
            if complete:
                self._delivered_until = self._heard
            if len(chunk) < READ_BUFFER:  # else much waits already
                await asyncio.sleep(self._heard + PACE - time.monotonic())

    def events(self, lines: Sequence[bytes]) -> Iterator[Sequence[WatchEvent]]:
        """What lines say, a few at a time. Raises ApiError, after what came before the error."""
        self._delivering, read = True, self._read
        for first in range(0, len(lines), AT_ONCE):
            events: list[WatchEvent] = []
            failure: ApiError | None = None
            try:
                for line in lines[first : first + AT_ONCE]:
                    events.append(read(line))  # noqa: PERF401 - those before an error count
            except ApiError as error:
                failure = error
            if events:
                last = events[-1].resource_version or self._complete(events)
                self._version = last
                yield events
            if failure is not None:
                raise failure
        self._delivering = False

    def _complete(self, events: list[WatchEvent]) -> str:
        """Give what cannot be read the version of what came before it; the last one's."""
        version = self._version
        for place, event in enumerate(events):
            if isinstance(event, Unreadable) and not event.resource_version:
                events[place] = msgspec.structs.replace(event, resource_version=version)
            version = events[place].resource_version
        return version

    async def _next_chunk(self) -> bytes:
        """What has arrived, or what arrives next; empty at the end."""
        try:
            while not (chunk := self._content.read_nowait()):
                try:
                    async with asyncio.timeout(self._limits.quiet):
                        return await self._content.readany()
                except TimeoutError:
                    if await self._is_over():
                        return b""
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self._session.host, error) from error
        return chunk

    async def _is_over(self) -> bool:
        """Whether a watch gone quiet should be opened anew. Raises when nobody is there."""
        silent = time.monotonic() - self._heard
        if silent > self._lasts + self._limits.slack:
            raise unreachable(self._session.host, TimeoutError(), within=round(silent))
        received = arrived_bytes(self._response)
        try:
            newest = await self._newest()
        except TooManyRequests:
            return False  # too busy for questions, but there
        except Unreachable:
            # The answer may be slow while the watch itself goes on.
            if arrived_bytes(self._response) > received:
                return False
            raise
        check_not_past(newest, self._version)
        return silent > self._limits.bookmark and number_of(newest) > number_of(self._version)


def check_not_past(newest: str, version: str) -> None:
    """Raise Gone when the cluster is not yet where we already were: it was restored or replaced.

    A watch from such a version is no error for the API server: it waits in silence.
    """
    if number_of(newest) < number_of(version):
        sentence = f"The cluster went back from resourceVersion {version} to {newest}."
        raise Gone(Status(code=Gone.code, reason=Gone.reason, message=sentence))


def _keep_alive(sock: socket.socket) -> None:
    """Let the kernel notice a half-open connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, seconds)
