"""Read one open watch: turn chunks into events, and check the cluster when it is silent."""

import asyncio
import contextlib
import select
import socket
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterator,
    Sequence,
)
from time import thread_time
from weakref import WeakKeyDictionary

import aiohttp
import msgspec

from leases.domain.lease import number_of
from leases.kube.http_session import READ_BUFFER, Session, Timeouts, WatchBody, unreachable
from leases.wire.renewal_lines import LineCutter, LineLengthError, Reader
from leases.wire.status import ApiError, Gone, Status, TooManyRequests, Unreachable
from leases.wire.watch_decoding import Unreadable, WatchEvent

SLICE = 0.0005  # seconds of work after which other tasks run
# The same where much waits: whenever a task yields, other threads may take the GIL for longer.
LONG_SLICE = 0.002


class Slices:
    """Measures the work of one task since it last yielded to others.

    It counts the thread's CPU time: if other threads kept it from working, the task need not yield
    again so soon. To ask for that costs a call of the system, so the first half of a slice is
    measured by the wall clock: most work is shorter.
    """

    def __init__(self, length: float = SLICE) -> None:
        self._half, self._long = length / 2, 4 * length
        self.begin()

    def begin(self) -> None:
        """The task was suspended until now: what others did meanwhile is not its work."""
        self._began = time.monotonic()
        self._spent: float | None = None  # CPU time at the end of the first half

    async def end(self) -> None:
        """Yield to other tasks if this slice was long enough. Call it between two steps."""
        if self.is_over():
            await asyncio.sleep(0)
            self.begin()

    def is_over(self) -> bool:
        """Whether it was long enough. Call it between two steps."""
        if self._spent is not None:
            return thread_time() - self._spent > self._half
        passed = time.monotonic() - self._began
        if passed > self._half:
            self._spent = thread_time()
        return passed > self._long  # one step may take as long as many


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@contextlib.asynccontextmanager
async def turn() -> AsyncIterator[None]:
    """Do a piece of work of one cluster alone, then let the loop turn.

    Without it a hundred clusters that are listed in the same second would each do a piece before
    the loop looks again whether a page or a probe was asked for.
    """
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        yield
        await asyncio.sleep(0)


# A connection that was cut silently (NAT, power) fails after 10 + 3 x 5 s.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


AT_ONCE = 64  # events decoded before they are followed: data in cache is read faster
# Seconds between reads: events that are processed together cost half as much. Many watches are
# read less often: each read wakes the process.
PACE, LONGEST_PACE = 0.05, 0.25
READS_PER_SECOND = 400  # of all watches


_being_read: set["OpenWatch"] = set()


def pace() -> float:
    """Return the seconds between two reads of a watch."""
    return min(LONGEST_PACE, max(PACE, len(_being_read) / READS_PER_SECOND))


class OpenWatch:
    """Reads the body of one watch.

    `newest` asks for the cluster's current resourceVersion. While the watch is quiet, it tells us
    whether the cluster is quiet, dead, or restored from a backup. That can wait while `idle`: no
    Lease can expire.
    """

    def __init__(
        self,
        body: WatchBody,
        *,
        session: Session,
        since: str,
        lasts: float,
        newest: Callable[[], Awaitable[str]],
        known: Container[int] = (),
        idle: Callable[[], bool] = bool,
        alive: float | None = None,
    ) -> None:
        """`alive` is when the cluster last gave a sign of life, by the monotonic clock."""
        self._body = body
        self._session = session
        self._limits: Timeouts = session.limits
        self._newest = newest
        self._idle = idle
        self._read = Reader(known).read
        self._version = since
        self._lasts = lasts
        self._heard = self._delivered_until = time.monotonic()
        # The last sign of life. That a watch is open is none yet: what came before it may follow.
        self._alive = self._heard if alive is None else alive
        self._wait: asyncio.Timeout | None = None  # for data
        self._read_at = 0.0  # not sooner, by the monotonic clock
        self._delivering = False
        self.slices = Slices()  # of the task that reads
        self._arriving = select.poll()
        if body.socket is not None:
            self._arriving.register(body.socket, select.POLLIN)
            _keep_alive(body.socket)

    def unprocessed_seconds(self) -> float:
        """Return how many seconds received data may have waited; 0: none waits. For any thread."""
        now = time.monotonic()
        # In this order: data that moves on meanwhile is met by a later question.
        waits = self._body.arrived > self._body.taken or self._delivering
        if not waits:
            self._delivered_until = now
        return now - self._delivered_until

    def silent_seconds(self) -> float:
        """Return for how many seconds neither data nor an answer has come."""
        return time.monotonic() - self._alive

    @property
    def alive_at(self) -> float:
        """When the cluster last gave a sign of life, by the monotonic clock."""
        return self._alive

    def look(self) -> None:
        """Ask the cluster now whether it is alive, unless that was asked already."""
        if self._wait is not None and not self._wait.expired():
            self._wait.reschedule(asyncio.get_running_loop().time())

    @property
    def should_be_read(self) -> bool:
        """Whether so much has arrived that it should be read at once."""
        return time.monotonic() >= self._read_at and self._has_more()

    def _has_more(self) -> bool:
        return self._body.arrived > self._body.taken or bool(self._arriving.poll(0))

    async def readings(self) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield the events of each read until the server ends the watch. Raises ApiError."""
        async with contextlib.aclosing(self.lines()) as readings:
            async for lines in readings:
                await self.slices.end()  # reading them took time already
                for events in self.events(lines):
                    yield events
                    await self.slices.end()

    async def lines(self) -> AsyncGenerator[list[bytes], None]:
        """Yield the complete lines of each read. Raises ApiError."""
        cutter, body = LineCutter(), self._body
        _being_read.add(self)
        try:
            while chunk := await self._next_chunk():
                self._delivering = True  # before it counts as taken
                body.taken = body.drained
                if body.held_back:  # TLS gives it in its next turn
                    await asyncio.sleep(0)
                self._heard = self._alive = time.monotonic()
                complete = not (body.held_back or self._has_more())
                try:
                    lines = cutter.feed(chunk)
                except LineLengthError as error:
                    raise Unreachable(f"{self._session.host}: {error}") from error
                if lines:
                    yield lines
                self._delivering = False  # they are followed, or kept and counted there
                if complete:
                    self._delivered_until = self._heard
                # After a full read much data waits already.
                self._read_at = 0.0 if len(chunk) >= READ_BUFFER else self._heard + pace()
        finally:
            _being_read.discard(self)

    def events(self, lines: Sequence[bytes]) -> Iterator[Sequence[WatchEvent]]:
        """Decode lines, a few at a time. Raises ApiError after the events before the error."""
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
        """Give unreadable events the version of the event before them. Returns the last version."""
        version = self._version
        for place, event in enumerate(events):
            if isinstance(event, Unreadable) and not event.resource_version:
                events[place] = msgspec.structs.replace(event, resource_version=version)
            version = events[place].resource_version
        return version

    async def _next_chunk(self) -> bytes:
        """Return received data, waiting for some; empty at the end."""
        limits, body = self._limits, self._body
        try:
            if body.arrived > body.taken:
                await self._pace()
            while not (chunk := body.read_nowait()) and not body.over:
                try:
                    quiet = limits.idle if self._idle() else limits.quiet
                    async with asyncio.timeout(quiet) as self._wait:
                        chunk = await body.read()
                        break
                except TimeoutError:
                    self._wait = None
                    if await self._is_over():
                        return b""
                finally:
                    self._wait = None
                    self.slices.begin()
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self._session.host, error) from error
        if chunk and await self._pace():
            self._delivering = True  # the next read may find nothing more
            with contextlib.suppress(aiohttp.ClientError):  # the next read raises it
                chunk += body.read_nowait()
        return chunk

    async def _pace(self) -> bool:
        """Wait until the next read may be. Returns False where that is now: after a silence."""
        wait = self._read_at - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
            self.slices.begin()
        return wait > 0

    async def _is_over(self) -> bool:
        """Whether to reopen a silent watch. Raises if the cluster does not answer."""
        asked = time.monotonic()
        silent = asked - self._heard
        if silent > self._lasts + self._limits.slack:
            raise unreachable(self._session.host, TimeoutError(), within=round(silent))
        try:
            newest = await self._newest_unless_data_comes()
        except TooManyRequests:
            self._alive = asked  # too busy to answer
            return False
        if newest is None:
            return False
        check_not_past(newest, self._version)
        self._alive = asked
        return silent > self._limits.bookmark and number_of(newest) > number_of(self._version)

    async def _newest_unless_data_comes(self) -> str | None:
        """Ask for the newest version; None if the watch goes on first: nobody else reads it."""
        received = self._body.arrived
        asking = asyncio.ensure_future(self._newest())
        try:
            while not asking.done() and self._body.arrived == received:
                await asyncio.wait([asking], timeout=PACE)
            return asking.result() if asking.done() else None
        except Unreachable:
            # The answer may be slow while the watch works.
            if self._body.arrived > received:
                return None
            raise
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


async def read_lines(body: WatchBody, *, host: str, lasts: float) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a quiet watch, of few and small objects, until it ends. Raises ApiError.

    `lasts`: seconds after which the server ends it.
    """
    cutter = LineCutter()
    if body.socket is not None:
        _keep_alive(body.socket)
    try:
        async with asyncio.timeout(lasts):
            while chunk := await body.read():
                for line in cutter.feed(chunk):
                    yield line
    except (LineLengthError, aiohttp.ClientError, OSError, TimeoutError) as error:
        raise unreachable(host, error, within=lasts) from error


def check_not_past(newest: str, version: str) -> None:
    """Raise Gone if the cluster's version is below ours: it was restored or replaced.

    For the API server such a watch is no error: it waits silently.
    """
    if number_of(newest) < number_of(version):
        sentence = f"The cluster went back from resourceVersion {version} to {newest}."
        raise Gone(Status(code=Gone.code, reason=Gone.reason, message=sentence))


def _keep_alive(sock: socket.socket) -> None:
    """Let the kernel detect a half-open connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, seconds)
