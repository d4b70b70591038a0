"""Changes and states on their way to the database: queued on the event loop, written in batches
by one thread.

Each batch is one transaction of changes and the states they led to; the last of those that wait
also holds the resourceVersion they reach. So a process killed at any instant finds, on its next
start, exactly what it still has to infer.
A change has a unique identity: writing it again, by a retry or another replica, adds nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import msgspec
from django.db import DatabaseError

from leases.domain.changes.change import Change
from leases.domain.lease import ObjectName, number_of
from leases.domain.past.watched_times import WatchedTime
from leases.history.recent_refusals import RecentRefusals
from leases.history.write.backlog import MAX_WAITING, Backlog
from leases.history.write.watched_spans import WatchLog
from leases.history.write.write_batch import Batch, let_go, write_what_fits
from leases.history.write.write_queue import Waiting

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHANGE_DELAY = 0.05  # seconds in which a change after a quiet time waits for companions
WRITE_EVERY = 0.25  # seconds from one write to the next while changes keep coming
RENEWED_PER_WRITE = 200
RENEWED_EVERY = 2.0  # seconds
STATE_DELAY = 2.0  # seconds until how far we are is written though nothing changed
CLOSING = 3.0  # seconds in which `close` writes what is left; the cluster tells the rest again
RETRY_DELAYS = (0.5, 1.0, 2.0, 5.0)


class StateSource(msgspec.Struct, frozen=True):
    """How the recorder reads one cluster's present state, on the event loop."""

    cluster: str
    state: Callable[[ObjectName], Any]  # what never changes; None: there is no such Lease any more
    resource_version: Callable[[], str | None]  # None: nothing was listed yet
    now: Callable[[], datetime]
    listing: Callable[[], bool] = lambda: False  # a large list is being read: it goes first
    renewed: Callable[[int], Sequence[ObjectName]] = lambda _: ()  # the next so many to remember
    encode: Callable[[Any], bytes] = bytes  # a state, in the thread that writes
    names: Callable[[], Iterable[ObjectName]] = tuple  # of all Leases that there are


class Recorder:
    """One per process. `record` never blocks; `run` writes until `close`, which waits for the
    last batch."""

    def __init__(self, most_waiting: int = MAX_WAITING) -> None:
        self._sources: dict[str, StateSource] = {}
        self._waiting: dict[str, Waiting] = {}
        self._reached: dict[str, str | None] = {}
        self._renewed_at: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._close_by = float("inf")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self.watches = WatchLog()
        self._backlog = Backlog(most_waiting)
        self._writing = 0  # changes in the transaction that is tried
        self._unwritten: Batch | None = None  # taken from the queue and not written yet
        self.refused = RecentRefusals()
        self.writes = 0  # transactions since the start
        self.write_seconds = 0.0

    def add(self, source: StateSource) -> None:
        """Watch over one more cluster's changes."""
        self._sources[source.cluster] = source
        self._waiting[source.cluster] = Waiting(self._backlog.most)
        self._reached[source.cluster] = source.resource_version()

    def record(
        self,
        *,
        cluster: str,
        changes: tuple[Change, ...] = (),
        changed: tuple[ObjectName, ...] = (),
    ) -> None:
        """Queue changes, and the names of Leases whose state is to be remembered."""
        if changes and not self._has_room(cluster, len(changes)):
            changes = ()
        waiting = self._waiting[cluster]
        waiting.add(changes, changed)
        if waiting.has_too_many_names:
            self._let_names_go(waiting, self._sources[cluster])
        if changes or changed:
            self._wake.set()

    @property
    def closing(self) -> bool:
        """Whether `run` is to end."""
        return self._closing.is_set()

    @property
    def waiting(self) -> int:
        """Changes not yet written."""
        return self._writing + sum(len(one) for one in tuple(self._waiting.values()))

    @property
    def problem(self) -> str | None:
        """Why history is not written, in sentences for a person; None when it is."""
        return self._backlog.says(self.waiting)

    async def run(self) -> None:
        """Write until `close`, and then what is left."""
        began = float("-inf")
        while not self._closing.is_set():
            # Without a change it is time for the states of those that only were renewed.
            if await _is_set(self._wake, within=STATE_DELAY):
                left = began + WRITE_EVERY - time.monotonic()
                await _is_set(self._closing, within=max(CHANGE_DELAY, left))
                began = time.monotonic()
            self._wake.clear()
            await self.flush()
        if self._unwritten is None:
            await self.flush()

    async def flush(self) -> None:
        """Write all that is queued, trying again until the database takes it."""
        if self._unwritten is not None and not await self._write_surely(self._unwritten):
            return
        for source in self._sources.values():
            complete = source.listing() and not self._closing.is_set()
            while not complete:
                batch = self._take(source)
                if batch is None:
                    break
                if not await self._write_surely(batch):
                    return
                complete = batch.complete or self._is_late()

    async def close(self, writing: asyncio.Task[None]) -> None:
        """Let `writing`, the task of `run`, write what is left, and let go of the thread."""
        self._closing.set()
        self._close_by = time.monotonic() + CLOSING
        self._wake.set()
        await writing
        await self.in_thread(let_go)
        self._thread.shutdown()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run other work on the database where it cannot collide with our own."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _is_late(self) -> bool:
        """Whether the time is over in which a recorder that closes may write."""
        if time.monotonic() < self._close_by:
            return False
        logger.warning("%d changes are left for the next start to infer", self.waiting)
        return True

    def _take(self, source: StateSource) -> Batch | None:
        """The next of what is queued for a cluster, with the states of this very instant."""
        waiting = self._waiting[source.cluster]
        changes, keys, complete = waiting.take(self._renewed(source))
        try:
            return self._batch(source, changes, keys, complete=complete)
        except BaseException:
            waiting.put_back(changes, keys)
            raise

    def _batch(
        self, source: StateSource, changes: list[Change], keys: list[ObjectName], *, complete: bool
    ) -> Batch | None:
        version, until, cluster = source.resource_version(), source.now(), source.cluster
        if version is None and not changes and not keys:
            return None
        states = tuple((key, source.state(key)) for key in keys)
        went_back = number_of(version) < number_of(self._reached[cluster])
        spans: tuple[WatchedTime, ...] = ()
        present: frozenset[ObjectName] | None = None
        if complete:
            if self._waiting[cluster].let_names_go:
                self._waiting[cluster].let_names_go = False
                present = frozenset(source.names())
            self._reached[cluster] = version
            if self._closing.is_set():
                self.watches.stop(cluster, until)
            spans = self.watches.take(cluster, until)
        return Batch(
            cluster=cluster,
            changes=tuple(changes),
            states=states,
            encode=source.encode,
            resource_version=version,
            complete=complete,
            watched_until=until,
            process=self.watches.process,
            spans=spans,
            went_back=went_back,
            present=present,
        )

    def _let_names_go(self, waiting: Waiting, source: StateSource) -> None:
        waiting.let_go(lambda key: source.state(key) is not None)
        if not self._backlog.let_names_go:
            self._backlog.let_names_go = True
            logger.warning("%s: the names of deleted Leases are let go", source.cluster)

    def _renewed(self, source: StateSource) -> Sequence[ObjectName]:
        """A list corrects what only was renewed: a restart needs it for what was learned alone."""
        now = time.monotonic()
        if now - self._renewed_at.get(source.cluster, 0.0) < RENEWED_EVERY:
            return ()
        self._renewed_at[source.cluster] = now
        return source.renewed(RENEWED_PER_WRITE)

    def _has_room(self, cluster: str, number: int) -> bool:
        """Whether so many changes more may wait. Once one was lost, all are until there is room
        for long: the time of which history knows nothing shall be one."""
        backlog, waiting = self._backlog, self.waiting
        if backlog.warns(waiting + number):
            logger.warning("%d changes wait in memory, of %d that may", waiting, backlog.most)
        if cluster not in backlog.lost:
            if waiting + number <= backlog.most:
                return True
            backlog.lost[cluster] = 0
            at = self._sources[cluster].now()
            self.watches.pause(cluster, at, "History could not be written, and changes were lost.")
            logger.error("%s: no room for more changes in memory; they are lost", cluster)
        backlog.lost[cluster] += number
        return False

    def _end_backlog(self) -> None:
        """The database takes changes again."""
        backlog = self._backlog
        backlog.error = None
        backlog.let_names_go = False
        if backlog.lost and not backlog.is_near(self.waiting):
            for cluster, number in backlog.lost.items():
                self.watches.resume(cluster, self._sources[cluster].now())
                logger.error("%s: %d changes were lost; from now on they are kept", cluster, number)
            backlog.lost.clear()

    async def _write_surely(self, batch: Batch) -> bool:
        """Try until it is written; closing, once. Nothing may be written after what was not."""
        attempt = 0
        self._unwritten, self._writing = batch, len(batch.changes)
        while True:
            began = time.monotonic()
            try:
                self.refused.add(await self.in_thread(partial(write_what_fits, batch)))
            except Exception as error:  # whatever it is, nothing of the batch may be dropped
                delay = RETRY_DELAYS[min(attempt, len(RETRY_DELAYS) - 1)]
                attempt += 1
                if self._closing.is_set():
                    logger.exception("%d changes could not be written", self.waiting)
                    return False
                self._backlog.error = str(error) or repr(error)
                unexpected = None if isinstance(error, DatabaseError) else error
                logger.warning(
                    "%s Trying again in %.1f s.", self.problem, delay, exc_info=unexpected
                )
                await _is_set(self._closing, within=delay)
            else:
                self._unwritten, self._writing = None, 0
                self._end_backlog()
                self.writes += 1
                self.write_seconds += time.monotonic() - began
                return True


async def _is_set(event: asyncio.Event, *, within: float) -> bool:
    """Whether it is, after so many seconds or, where that is sooner, as soon as it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
