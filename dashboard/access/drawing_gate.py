"""Draw one page at a time, after the late watches; a page that waits delays no other.

Threads share one interpreter with the loop that reads the watches. With many threads at work the
loop would come too late, and an API server cuts a watch that is not read. So a page holds the gate
while it computes, and lets it go while it waits for the database.

Whoever holds the gate must wait for no other lock: its owner may be waiting for the gate. Wait
inside `waiting()`.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, TypeVar

from django.db import connection

from leases.history.database import connect

T = TypeVar("T")


class PageTurns:
    """A lock of pages. One that has begun goes on before another begins: what waits half done
    keeps what it has read.
    """

    def __init__(self) -> None:
        lock = threading.Lock()
        self._to_begin, self._to_go_on = threading.Condition(lock), threading.Condition(lock)
        self._going_on = 0  # that wait
        self._taken = False

    def acquire(self, *, has_begun: bool) -> None:
        waits = self._to_go_on if has_begun else self._to_begin
        with waits:
            self._going_on += has_begun
            while self._taken or (self._going_on and not has_begun):
                waits.wait()
            self._going_on -= has_begun
            self._taken = True

    def release(self) -> None:
        with self._to_begin:
            self._taken = False
            (self._to_go_on if self._going_on else self._to_begin).notify()

    def locked(self) -> bool:
        return self._taken


LATE = 0.25  # seconds for which a watch may wait to be read before pages wait for it
MAX_WAIT = 2.0  # seconds for all pages together: a watch that stays late must not hide everything
LOOK = 0.02  # seconds between two looks at the watches
FORGOTTEN = 1.0  # seconds without a look after which a late watch is waited for again
MAX_PAUSE = 0.1  # seconds left to a late watch between two pages; at most what the last one took
MAX_BEGUN = 4  # pages at a time: Python keeps the room that all of them needed at once
BEGIN_WITHIN = 2.0  # seconds after which one begins though so many wait for the database
MAX_LARGE = 2  # pages at a time that hold much until they are drawn
LARGE_WITHIN = 5.0  # seconds after which one goes on though so many are under way


@contextmanager
def _counted(room: threading.Semaphore, within: float) -> Iterator[None]:
    """Hold one of its places for the block; after so many seconds without one, go on uncounted."""
    counted = room.acquire(timeout=within)
    try:
        yield
    finally:
        if counted:
            room.release()


class Followed(Protocol):
    """The part of a watched cluster that tells whether its watch is late."""

    @property
    def unprocessed_seconds(self) -> Callable[[], float]:
        """Seconds that the oldest unread bytes of the watch have waited."""


class PageGate:
    """Any thread may use it; not the event loop, for it blocks."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._drawing = PageTurns()
        self._begun = threading.BoundedSemaphore(MAX_BEGUN)
        self._large = threading.BoundedSemaphore(MAX_LARGE)
        self._mine = threading.local()
        self._began = 0.0
        self._took = 0.0  # seconds that the last holder of the gate took
        self._looking = threading.Lock()
        self._late_since: float | None = None
        self._looked_at = 0.0
        self._punctual_at = float("-inf")  # the last time that no watch was late

    @contextmanager
    def drawing(self, clusters: Collection[Followed]) -> Iterator[None]:
        """Hold the gate for the block, but for its queries to the database."""
        connect()  # may wait, so before the gate
        with _counted(self._begun, BEGIN_WITHIN):
            self._mine.clusters = clusters
            self._enter(clusters, has_begun=False)
            # Around the wrapper that times statements: to wait for the gate is no slow statement.
            connection.execute_wrappers.insert(0, self._execute)
            try:
                yield
            finally:
                connection.execute_wrappers.remove(self._execute)
                self._leave()
                self._mine.clusters = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let other pages be drawn during the block; without the gate, this changes nothing."""
        clusters = getattr(self._mine, "clusters", None)
        if clusters is None:
            yield
            return
        self._mine.clusters = None
        self._leave()
        try:
            yield
        finally:
            self._enter(clusters, has_begun=True)
            self._mine.clusters = clusters

    @contextmanager
    def large(self) -> Iterator[None]:
        """Read and draw in the block what takes much memory, few pages at a time."""
        with ExitStack() as stack:
            with self.waiting():
                stack.enter_context(_counted(self._large, LARGE_WITHIN))
            yield

    def _execute(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        found = self._read(lambda: execute(sql, params, many, context))
        if connection.vendor == "sqlite":  # looks for most of the rows only while they are fetched
            cursor = context["cursor"]
            fetch = cursor.fetchall
            cursor.fetchall = lambda: self._read(fetch)
        return found

    def _read(self, read: Callable[[], T]) -> T:
        """As in `waiting`, but faster: a page may have a thousand such reads."""
        mine = self._mine
        clusters = getattr(mine, "clusters", None)
        if clusters is None:
            return read()
        mine.clusters = None
        self._leave()
        try:
            return read()
        finally:
            self._enter(clusters, has_begun=True)
            mine.clusters = clusters

    def _enter(self, clusters: Collection[Followed], *, has_begun: bool) -> None:
        while True:
            while self._should_wait(clusters):
                self._sleep(LOOK)
            self._drawing.acquire(has_begun=has_begun)
            if not self._should_wait(clusters):  # nothing turned late while others drew
                break
            self._drawing.release()
        if self._late_since is not None:
            self._sleep(min(self._took, MAX_PAUSE))
        self._began = self._clock()

    def _leave(self) -> None:
        self._took = self._clock() - self._began
        self._drawing.release()

    def _should_wait(self, clusters: Collection[Followed]) -> bool:
        """Whether a watch is late, and has not been waited for long enough."""
        now = self._clock()
        if now - self._punctual_at < LOOK:
            return False
        late = any(one.unprocessed_seconds() > LATE for one in clusters)
        with self._looking:
            forgotten = now - self._looked_at > FORGOTTEN
            self._looked_at = now
            if not late:
                self._late_since, self._punctual_at = None, now
                return False
            if self._late_since is None or forgotten:
                self._late_since = now
            return now - self._late_since < MAX_WAIT


drawing_gate = PageGate()  # of the process, for threads share one interpreter
