"""List and watch for ever: a cluster's Leases as one stream of events.

The API server keeps only the last 100,000 events or so. In the largest clusters those cover a few
seconds, less than a list takes. So we read the events meanwhile and keep them here.

Source: k8s.io/client-go/tools/cache/reflector.go (ListAndWatch, handleAnyWatch).
"""

import asyncio
import contextlib
import logging
import random
import time
import zlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Container, Sequence

import msgspec

from leases.domain.lease import number_of
from leases.kube.backoff import Backoff
from leases.kube.lease_client import LeaseClient
from leases.kube.open_watch import LONG_SLICE, OpenWatch, Slices, check_not_past, turn
from leases.wire.status import ApiError, Forbidden, Gone, Unauthorized, Unreachable
from leases.wire.watch_decoding import (
    Arrived,
    Bookmark,
    Connected,
    Disconnected,
    Listed,
    ListPage,
    ReflectorEvent,
    Replayed,
    WatchEvent,
    read_event,
)

logger = logging.getLogger(__name__)

PACKED = 512  # lines at a time: zlib lets other threads take the GIL, who keep it for longer
REST = 0.1  # seconds between two looks whether there is room again
TOO_SLOW = 1.0  # seconds that received data waits; then reading goes on without the following
FAST = 1  # zlib's level: it packs renewals to a twentieth
MAX_KEPT = 64 * 1024 * 1024  # bytes, compressed


OpenWatchAt = Callable[[str], contextlib.AbstractAsyncContextManager[OpenWatch]]


class Ahead:
    """Follows one watch. `read` keeps its lines, compressed, while nobody follows, or too slowly.

    The server cuts a watch that nobody reads. A watch that ends while it is read ahead is opened
    again where it ended: by the time all is followed, the server may have forgotten what came next.
    """

    def __init__(self, open_watch: OpenWatchAt) -> None:
        self._open_watch = open_watch
        self._opened = contextlib.AsyncExitStack()
        self._is_open = False
        # (time of reading, the watch that read, lines)
        self._kept: deque[tuple[float, OpenWatch, bytes]] = deque()
        self._last_lines: list[bytes] = []  # of the last reading
        self._bytes = 0  # that are kept
        self._rest_since: float | None = None  # the rest of what was read last is not followed yet
        self._came = asyncio.Event()  # something was kept, or nobody reads now
        self._followed = asyncio.Event()  # all that was kept
        self._reading: asyncio.Task[None] | None = None

    async def open(self, since: str) -> None:
        """Open the watch, or another in its place. Raises ApiError."""
        self._is_open = False
        await self._opened.aclose()
        self._watch = await self._opened.enter_async_context(self._open_watch(since))
        self._lines, self._is_open = self._watch.lines(), True
        self._since, self._last_lines = since, []

    def unprocessed_seconds(self) -> float:
        """Return how many seconds the oldest line has waited that was read ahead; 0: none was."""
        since = self._kept[0][0] if self._kept else None
        since = since if self._rest_since is None else self._rest_since
        return 0.0 if since is None else time.monotonic() - since

    def read(self) -> None:
        """Read and keep lines from now on, until what is kept was followed."""
        self._followed.clear()
        self._came.clear()
        self._reading = reading = asyncio.create_task(self._read())
        reading.add_done_callback(lambda _: self._came.set())

    async def follow(self) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield the kept lines, then new ones. Raises ApiError if the watch broke."""
        reads_ahead = True
        while reads_ahead:
            if self._reading is not None:
                async with contextlib.aclosing(self._follow_kept(self._reading)) as kept:
                    async for events in kept:
                        yield events
            slices, reads_ahead = self._watch.slices, False
            async for lines in self._lines:
                self._last_lines = lines
                await slices.end()
                for events in self._watch.events(lines):
                    waited = self._watch.unprocessed_seconds()
                    if not reads_ahead and waited > TOO_SLOW:
                        self._rest_since = time.monotonic() - waited
                        self.read()
                        reads_ahead = True
                    yield events
                    await slices.end()
                if reads_ahead:
                    self._rest_since = None
                    break

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._lines.aclose()
        await self._opened.aclose()

    async def _follow_kept(
        self, reading: asyncio.Task[None]
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        slices = Slices(LONG_SLICE)
        await self._came.wait()
        while self._kept or not reading.done():
            while self._kept:
                _, watch, lines = self._kept[0]
                for events in watch.events(_unpacked(lines)):
                    yield events
                    await slices.end()
                    await self._let_read(reading)
                self._bytes -= len(lines)
                self._kept.popleft()
            self._followed.set()
            await asyncio.wait([reading])
        await reading

    async def _let_read(self, reading: asyncio.Task[None]) -> None:
        """Let the reading go first while there is room: the server cuts whom it waits for."""
        while self._is_open and self._watch.should_be_read and not reading.done():
            if self._bytes > MAX_KEPT:
                return
            await asyncio.sleep(0)

    async def _read(self) -> None:
        """Read until all that was kept is followed. Raises ApiError."""
        backoff = Backoff()
        failure: ApiError | None = None
        while not self._followed.is_set():
            try:
                if not self._is_open:
                    await self.open(self._read_until())
                await self._keep(backoff)
                failure = None
            except (Gone, Unauthorized, Forbidden):
                raise
            except ApiError as error:
                failure = error
            if not self._followed.is_set():
                self._is_open = False
                self._came.set()
                why = failure or "The server ended it."
                logger.info("the watch ended while it was read ahead, and is opened again: %s", why)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(backoff.delay()):
                        await self._followed.wait()
        if failure is not None:
            raise failure

    def _read_until(self) -> str:
        """Return the version up to which events were read. Raises ApiError if an error was read."""
        versions = (read_event(line).resource_version for line in reversed(self._last_lines))
        return next(filter(None, versions), self._since)

    async def _keep(self, backoff: Backoff) -> None:
        while not self._followed.is_set():
            if self._bytes > MAX_KEPT:  # the server cuts the watch, and we list again
                await asyncio.sleep(REST)
                continue
            lines = await anext(self._lines, None)
            if lines is None:
                return
            backoff.reset()
            self._last_lines = lines
            for first in range(0, len(lines), PACKED):
                some = b"\n".join(lines[first : first + PACKED])
                packed = zlib.compress(some, FAST)
                self._kept.append((time.monotonic(), self._watch, packed))
                self._came.set()
                self._bytes += len(packed)
            await asyncio.sleep(0)


def _unpacked(lines: bytes) -> list[bytes]:
    return zlib.decompress(lines).split(b"\n")


@contextlib.asynccontextmanager
async def opened(
    client: LeaseClient, since: str, known: Container[int], idle: Callable[[], bool]
) -> AsyncIterator[Ahead]:
    """Open a watch. Raises ApiError if it cannot be opened."""
    ahead = Ahead(
        lambda version: client.open_watch(
            version, timeout_seconds=_lasting(), known=known, idle=idle
        )
    )
    await ahead.open(since)
    try:
        yield ahead
    finally:
        await ahead.close()


WATCH_SECONDS = (300, 600)  # each watch lasts a random time in between, as in client-go
# A bookmark comes two seconds before a watch ends: after it, or its version, no backlog is left.
# Source: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, nextBookmarkTime.
REPLAY_SECONDS = 4
REPLAY_TRIES = 3  # tries in a row that bring no event
MAX_RETRY_AFTER = 300.0


async def reflect(
    client: LeaseClient,
    *,
    since: str | None,
    backoff: Backoff,
    known: Container[int] = (),
    idle: Callable[[], bool] = bool,
    resume: bool = False,
) -> AsyncGenerator[ReflectorEvent, None]:
    """Yield everything that happens to the cluster's Leases, until cancelled or closed.

    `since` is the resourceVersion that an earlier run reached: events from then up to the first
    list come first, as Replayed. After a 410 such events come as if the watch had not broken. A
    renewal with a fingerprint in `known` comes as Renewed. While `idle` no Lease can expire: a
    silent cluster is asked less often whether it is there. With `resume` this run itself reached
    `since` and has a complete list: the watch continues there. Close it (contextlib.aclosing).
    """
    reflection = _Reflection(client, since, known, idle)
    if resume and since:
        reflection.version = since
    while True:
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with contextlib.aclosing(reflection.catch_up(stack)) as news:
                    async for event in news:
                        yield event
                        del event  # a watch may last for long, and the page of a list is large
                readings = await stack.enter_async_context(reflection.watch())
                if not reflection.connected:
                    unprocessed, listed = reflection.unprocessed_seconds, reflection.connect()
                    yield Connected(unprocessed, client.silent_seconds, client.look, listed)
                async for events in readings:
                    reflection.version = events[-1].resource_version
                    backoff.reset()
                    yield Arrived(events)
        except ApiError as error:
            refused = isinstance(error, Unauthorized | Forbidden)
            detail = client.advise(error)
            at = f"watch broke at resourceVersion {reflection.version}"
            logger.warning("%s: %s", at if reflection.version else "no list", detail)
            reflection.break_off(error)
            yield Disconnected(detail, refused)
            wanted, gone = min(error.retry_after or 0.0, MAX_RETRY_AFTER), isinstance(error, Gone)
            await asyncio.sleep(backoff.delay(at_least=wanted, refused=refused, gone=gone))


class _Reflection:
    """The progress of the stream, from which the next try continues."""

    def __init__(
        self,
        client: LeaseClient,
        since: str | None,
        known: Container[int],
        idle: Callable[[], bool],
    ) -> None:
        self._client = client
        self._idle = idle
        self._known = known
        # Everything up to this version is known, from an earlier run or from us.
        self._known_version = since or ""
        self._ours = False
        self._reason = "start"
        self.connected = False
        self._broke_at: float | None = None  # of `time.monotonic`
        self._asked: float | None = None  # the list before this watch, if any
        self._ahead: Ahead | None = None  # the watch; it may be opened before the list is complete
        self.version = ""  # empty: list first

    async def catch_up(
        self, stack: contextlib.AsyncExitStack
    ) -> AsyncGenerator[ReflectorEvent, None]:
        """Yield what must come before a watch: nothing, a check, or a list. Raises ApiError.

        The `stack` keeps what is already opened for the watch.
        """
        self._ahead = None
        if self.connected:
            return
        if self.version:
            check_not_past(await self._client.newest_version(), self.version)
            return
        for last_try in (False, True):
            try:
                async with contextlib.aclosing(self._list(stack)) as news:
                    async for event in news:
                        yield event
                return
            except Gone:  # the continue token expired
                await stack.aclose()
                self._ahead = None
                if last_try:
                    raise

    async def _list(self, stack: contextlib.AsyncExitStack) -> AsyncGenerator[ReflectorEvent, None]:
        """Yield the events between the known version and the list, if available; then the list."""
        begun, self._asked = False, time.monotonic()
        async with contextlib.aclosing(self._client.list()) as pages:
            async for page in pages:
                came = time.monotonic()
                if not begun and isinstance(page, ListPage):
                    try:
                        self._ahead = await stack.enter_async_context(
                            opened(self._client, page.resource_version, self._known, self._idle)
                        )
                        self._ahead.read()
                    except ApiError as error:  # a later try will say why
                        logger.info("cannot watch while the list is read: %s", error)
                if not begun and self._known_version:
                    async with contextlib.aclosing(self._past(page.resource_version)) as news:
                        async for event in news:
                            yield event
                begun = True
                async with turn():
                    age = time.monotonic() - came
                    if isinstance(page, Listed):
                        self.version = page.resource_version
                        yield msgspec.structs.replace(page, reason=self._reason, age=age)
                        return
                    yield msgspec.structs.replace(page, age=age)

    async def _past(self, until: str) -> AsyncGenerator[ReflectorEvent, None]:
        """Yield the events up to a list that the cluster still has."""
        since, self._known_version = self._known_version, until
        if number_of(since) > number_of(until):
            self._reason = "gone" if self._ours else "restored"
        elif number_of(since) < number_of(until):
            between = _between(self._client, since, number_of(until), self._known)
            async with contextlib.aclosing(between) as past:
                async for events in past:
                    if self._ours:
                        yield Arrived(events)
                    elif written := [one for one in events if not isinstance(one, Bookmark)]:
                        yield Replayed(written)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Sequence[WatchEvent]]]:
        """Follow one watch. Raises ApiError, also if the watch ends at once."""
        if self._ahead is not None:
            async with contextlib.aclosing(self._ahead.follow()) as readings:
                yield readings
            return
        began = time.monotonic()
        async with (
            opened(self._client, self.version, self._known, self._idle) as self._ahead,
            contextlib.aclosing(self._ahead.follow()) as readings,
        ):
            yield readings
        if time.monotonic() - began < self._client.limits.short:
            sentence = f"{self._client.host} ended the watch as soon as it was open."
            raise Unreachable(sentence)

    def unprocessed_seconds(self) -> float:
        """Return how many seconds received data may have waited."""
        ahead = 0.0 if self._ahead is None else self._ahead.unprocessed_seconds()
        return max(ahead, self._client.unprocessed_seconds())

    def connect(self) -> float:
        """The watch is open; that it broke is in the log, so that it is back is, too.

        Returns for how many seconds it may report the past: since a list was asked for.
        """
        if self._broke_at is not None:
            lost = time.monotonic() - self._broke_at
            logger.info("watch is back at resourceVersion %s, after %.1f s", self.version, lost)
        self.connected, self._broke_at = True, None
        asked, self._asked = self._asked, None
        return 0.0 if asked is None else time.monotonic() - asked

    def break_off(self, error: ApiError) -> None:
        """The watch broke; after Gone the next try lists."""
        self.connected = False
        if self._broke_at is None:
            self._broke_at = time.monotonic()
        if isinstance(error, Gone):
            if self.version:
                self._known_version, self._ours = self.version, True
            self.version, self._reason = "", "gone"


def _lasting() -> int:
    """Return how many seconds a watch should last."""
    return random.randint(*WATCH_SECONDS)  # noqa: S311 - spreads load, hides nothing


async def _between(
    client: LeaseClient, since: str, until: int, known: Container[int]
) -> AsyncGenerator[Sequence[WatchEvent], None]:
    """Yield the events between two resourceVersions that the cluster still has.

    Any watch may end early, also cleanly, so only REPLAY_TRIES without an event end the replay.
    """
    tries = 0
    while tries < REPLAY_TRIES:
        began, waits = since, False
        try:
            async with client.watch(since, timeout_seconds=REPLAY_SECONDS, known=known) as readings:
                while True:
                    try:
                        async with asyncio.timeout(client.limits.replay):
                            events = await anext(readings, None)
                    except TimeoutError:
                        waits = client.unprocessed_seconds() > 0
                        raise
                    if events is None:
                        logger.info("the replay ended at resourceVersion %s of %d", since, until)
                        break
                    since = events[-1].resource_version
                    past = [one for one in events if number_of(one.resource_version) <= until]
                    if past:
                        yield past
                    if number_of(since) >= until:
                        return
                    await asyncio.sleep(0)
        except Gone as error:
            logger.info("nothing more to replay since resourceVersion %s: %s", since, error)
            return
        except TimeoutError:
            # After events, or with data that waits, the silence may be ours or the network's.
            if since == began and not waits:
                logger.info("nothing was replayed since resourceVersion %s of %d", since, until)
                return
        except ApiError as error:
            logger.info("the replay broke at resourceVersion %s: %s", since, error)
        tries = tries + 1 if since == began else 0
