"""Queue changes and states on the event loop, and write them in batches in one thread.

Each batch is changes of one cluster and the states they led to. The last one also stores the
resourceVersion reached. So a process killed at any time finds at its next start exactly what it
must infer. Every change has a unique identity: writing it again, by a retry or another replica,
adds nothing.

One transaction has the batches of all clusters in which something happened: what is written costs
by that, not by how many clusters there are.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from django.db import DatabaseError

from leases.domain.change import Change
from leases.domain.incident import Incident, Member
from leases.domain.lease import ObjectName, number_of
from leases.domain.watched_times import WatchedTime
from leases.history.insert_incidents import IncidentBatch, Reviewed, write_incidents_of
from leases.history.refused_rows import RecentRefusals, RefusedValue
from leases.history.watched_spans import LASTS, WatchLog
from leases.history.write_batch import Batch, let_go, write_what_fits
from leases.history.write_queue import (
    CHANGES_PER_WRITE,
    INCIDENTS_PER_WRITE,
    MAX_WAITING,
    Backlog,
    IncidentQueue,
    Waiting,
)


async def is_set(event: asyncio.Event, *, within: float) -> bool:
    """Wait for an event up to `within` seconds. Returns whether it is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()


logger = logging.getLogger(__name__)

T = TypeVar("T")
Write = Callable[[], list[RefusedValue]]  # of one transaction
NONE: Mapping[str, int] = MappingProxyType({})

CHANGE_DELAY = 0.05  # seconds that a change after a quiet time waits for others
WRITE_EVERY = 0.25  # seconds from one write to the next while changes keep coming
RENEWED_PER_WRITE = 200  # of all clusters together
STATE_DELAY = 2.0  # seconds until the progress is written without changes
PROGRESS_PER_SECOND = 100  # clusters of which it is written then; of more, each is less often
LIST_FIRST = 30.0  # seconds for which a large list that is being read holds up the writing
CLOSING = 1.5  # seconds for `close` to write the rest; the watch replays what is lost
RETRY_DELAYS = (0.5, 1.0, 2.0, 5.0)


class StateSource(msgspec.Struct, frozen=True):
    """How the recorder reads one cluster's current state, on the event loop."""

    cluster: str
    state: Callable[[ObjectName], Any]  # an immutable value; None: the Lease is gone
    resource_version: Callable[[], str | None]  # None: nothing was listed yet
    now: Callable[[], datetime]
    listing: Callable[[], bool] = lambda: False  # a large list is being read: it goes first
    size: Callable[[], int] = lambda: 1  # how many Leases it has
    # Returns the next renewed Leases to store.
    renewed: Callable[[int], Sequence[ObjectName]] = lambda _: ()
    encode: Callable[[Any], bytes] = bytes  # encodes a state, in the writing thread
    names: Callable[[], Iterable[ObjectName]] = tuple  # of all present Leases


class Recorder:
    """One per process. `record` never blocks; `close` waits until `run` has written the rest."""

    def __init__(self, most_waiting: int = MAX_WAITING) -> None:
        self._sources: dict[str, StateSource] = {}
        self._waiting: dict[str, Waiting] = {}
        self._incidents: dict[str, IncidentQueue] = {}
        # Concluded since changes were last taken: perhaps from changes that wait still.
        self._concluded: dict[str, dict[str, Reviewed]] = {}
        self._reached: dict[str, str | None] = {}
        self._renewed_at: dict[str, float] = {}
        self._size = 1  # Leases of all clusters
        self._progress_delay = STATE_DELAY  # seconds from one progress of a cluster to the next
        self._held_up_at: dict[str, float] = {}  # since when a list goes first
        self._leaving: set[str] = set()  # clusters that are watched no longer
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._close_by = float("inf")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self.watches = WatchLog()
        self._backlog = Backlog(most_waiting)
        self._writing: Mapping[str, int] = NONE  # changes in the current transaction, by cluster
        # Taken from the queue, not written yet.
        self._unwritten: tuple[Write, Mapping[str, int]] | None = None
        self.refused = RecentRefusals()
        self.writes = 0  # transactions since the start
        self.write_seconds = 0.0

    def add(self, source: StateSource) -> None:
        self._leaving.discard(source.cluster)
        self._sources[source.cluster] = source
        self._waiting.setdefault(source.cluster, Waiting(self._backlog.most))
        incidents = IncidentQueue(source.cluster, self._backlog.most)
        self._incidents.setdefault(source.cluster, incidents)
        self._concluded.setdefault(source.cluster, {})
        self._reached[source.cluster] = source.resource_version()

    def remove(self, cluster: str) -> None:
        """The cluster is watched no longer: write what waits of it, then forget it."""
        self.watches.stop(cluster, self._sources[cluster].now())
        self._leaving.add(cluster)
        self._wake.set()

    def _forget(self, cluster: str) -> None:
        self._leaving.discard(cluster)
        for kept in (self._sources, self._waiting, self._incidents, self._concluded):
            kept.pop(cluster, None)
        self._reached.pop(cluster, None)
        self._renewed_at.pop(cluster, None)
        self._held_up_at.pop(cluster, None)
        self._backlog.lost.pop(cluster, None)

    def record(
        self,
        *,
        cluster: str,
        changes: tuple[Change, ...] = (),
        changed: tuple[ObjectName, ...] = (),
    ) -> None:
        """Queue changes, and the names of Leases whose state to store."""
        if changes and not self._has_room(cluster, len(changes)):
            changes = ()
        waiting = self._waiting[cluster]
        waiting.add(changes, changed)
        if waiting.has_too_many_names:
            self._let_names_go(waiting, self._sources[cluster])
        if changes or changed:
            self._wake.set()

    def restore_incidents(self, cluster: str, some: list[Incident], unmarked: set[Member]) -> None:
        """Note which incidents an earlier run left open, and which of their changes unmarked."""
        self._incidents[cluster].restore(some, unmarked)

    def record_incidents(self, cluster: str, reviewed: Iterable[Reviewed]) -> None:
        """Queue incidents. They are written after the changes that were queued before."""
        self._concluded[cluster] |= {one.incident.id: one for one in reviewed}
        self._wake.set()

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    @property
    def waiting(self) -> int:
        """Changes not written yet."""
        return sum(self._writing.values()) + sum(len(one) for one in tuple(self._waiting.values()))

    def waiting_of(self, cluster: str) -> int:
        """Changes that may not be written yet, of one cluster. 0: all of them are."""
        waiting = self._waiting.get(cluster)
        return self._writing.get(cluster, 0) + (0 if waiting is None else len(waiting))

    @property
    def problem(self) -> str | None:
        """Return why history is not written, for a person; None when it is."""
        return None if self._backlog.error is None else self._backlog.says(self.waiting)

    async def run(self) -> None:
        """Write until `close`, then write the rest."""
        began = float("-inf")
        while not self._closing.is_set():
            # Without changes, store the states of renewed Leases.
            if await is_set(self._wake, within=STATE_DELAY):
                left = began + WRITE_EVERY - time.monotonic()
                await is_set(self._closing, within=max(CHANGE_DELAY, left))
                began = time.monotonic()
            self._wake.clear()
            await self.flush()
        if self._unwritten is None:
            await self.flush()

    async def flush(self) -> None:
        """Write the whole queue, retrying until the database accepts it."""
        if self._unwritten is not None and not await self._write_surely(*self._unwritten):
            return
        self._size = max(1, sum(one.size() for one in self._sources.values()))
        wanted = max(STATE_DELAY, len(self._sources) / PROGRESS_PER_SECOND)
        self._progress_delay = min(wanted, LASTS.total_seconds() / 2)
        sources = [one for one in self._sources.values() if not self._waits_for_a_list(one)]
        if not await self._flush_changes(deque(sources)):
            return
        while batches := self._take_incidents(sources):
            if not await self._write_surely(partial(write_incidents_of, *batches)):
                return
        for source in sources:
            if source.cluster in self._leaving:
                self._forget(source.cluster)

    def _waits_for_a_list(self, source: StateSource) -> bool:
        """A board that cannot keep up lists again and again: its changes do not wait for ever."""
        if not source.listing() or self._closing.is_set() or source.cluster in self._leaving:
            self._held_up_at.pop(source.cluster, None)
            return False
        since = self._held_up_at.setdefault(source.cluster, time.monotonic())
        is_first = source.resource_version() is None
        if is_first or time.monotonic() - since < LIST_FIRST:
            return True
        del self._held_up_at[source.cluster]
        return False

    async def _flush_changes(self, sources: deque[StateSource]) -> bool:
        """Write what waits of these clusters, which are taken from the queue."""
        while sources:
            batches = self._take_some(sources)
            if batches and not await self._write_surely(*_one_write(batches)):
                return False
            if batches and not batches[-1].complete and self._is_late():
                sources.popleft()
        return True

    def _take_some(self, sources: deque[StateSource]) -> list[Batch]:
        """Take what fits into one transaction; a cluster with more than that stays in the queue."""
        batches: list[Batch] = []
        room = CHANGES_PER_WRITE
        while sources and room > 0:
            try:
                batch = self._take(sources[0])
            except BaseException:
                if batches:
                    self._unwritten = _one_write(batches)
                    self._writing = self._unwritten[1]
                raise
            if batch is not None:
                batches.append(batch)
                room -= 1 + len(batch.changes) + len(batch.states)
                if not batch.complete:
                    break
            sources.popleft()
        return batches

    async def close(self, writing: asyncio.Task[None]) -> None:
        """Let `writing`, the task of `run`, finish, and stop the thread."""
        self._closing.set()
        self._close_by = time.monotonic() + CLOSING
        self._wake.set()
        await writing
        await self.in_thread(let_go)
        self._thread.shutdown()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run other database work in the writing thread, so that it cannot collide with writes."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _take_incidents(self, sources: Iterable[StateSource]) -> list[IncidentBatch]:
        """Take what fits into one transaction, of each cluster at most one batch."""
        batches: list[IncidentBatch] = []
        room = INCIDENTS_PER_WRITE
        for source in sources:
            batch = self._incidents[source.cluster].take() if room > 0 else None
            if batch is not None:
                batches.append(batch)
                room -= 1 + len(batch.reviewed)
        return batches

    def _is_late(self) -> bool:
        if time.monotonic() < self._close_by:
            return False
        logger.warning("%d changes were not written: the next start infers them", self.waiting)
        return True

    def _take(self, source: StateSource) -> Batch | None:
        """Return None if nothing happened since a moment ago."""
        cluster, waiting = source.cluster, self._waiting[source.cluster]
        renewed, ends = self._renewed(source), self._closing.is_set() or cluster in self._leaving
        if renewed is None and waiting.is_empty and not (self._concluded[cluster] or ends):
            return None
        changes, keys, complete = waiting.take(renewed or ())
        if complete:  # their changes are written by then
            for one in self._concluded[cluster].values():
                self._incidents[cluster].add(one)
            self._concluded[cluster].clear()
        if not (changes or keys or ends) and renewed is None:
            return None
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
            states=tuple((key, source.state(key)) for key in keys),
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
            logger.warning("%s: dropping names of deleted Leases to save memory", source.cluster)

    def _renewed(self, source: StateSource) -> Sequence[ObjectName] | None:
        """Return renewed Leases to store; None: some were stored a moment ago.

        A list repairs all but their learned intervals.
        """
        now, delay = time.monotonic(), self._progress_delay
        if now - self._renewed_at.get(source.cluster, float("-inf")) < delay:
            return None
        self._renewed_at[source.cluster] = now
        share = RENEWED_PER_WRITE * source.size() / self._size * delay / STATE_DELAY
        return source.renewed(max(1, int(share)))

    def _has_room(self, cluster: str, number: int) -> bool:
        """Whether this many more changes may wait.

        After a first loss all are lost until there is plenty of room, so that the unknown time is
        one span.
        """
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
        """The database accepts changes again."""
        backlog = self._backlog
        backlog.error = None
        backlog.let_names_go = False
        if backlog.lost and not backlog.is_near(self.waiting):
            for cluster, number in backlog.lost.items():
                self.watches.resume(cluster, self._sources[cluster].now())
                logger.error("%s: %d changes were lost; new ones are stored again", cluster, number)
            backlog.lost.clear()

    async def _write_surely(self, write: Write, changes: Mapping[str, int] = NONE) -> bool:
        """Write a batch, retrying; while closing, try once. Never write past a failed batch."""
        attempt = 0
        self._unwritten, self._writing = (write, changes), changes
        while True:
            began = time.monotonic()
            try:
                self.refused.add(await self.in_thread(write))
            except Exception as error:  # whatever it is, the batch must not be dropped
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
                await is_set(self._closing, within=delay)
            else:
                self._unwritten, self._writing = None, NONE
                self._end_backlog()
                self.writes += 1
                self.write_seconds += time.monotonic() - began
                return True


def _one_write(batches: Sequence[Batch]) -> tuple[Write, Mapping[str, int]]:
    """The transaction of these batches, and how many changes it writes of each cluster."""
    changes = {batch.cluster: len(batch.changes) for batch in batches}
    return partial(write_what_fits, *batches), changes
