"""Tasks that finish what admins began: deletions of many Leases, and writes without an answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DatabaseError

from dashboard.watched_cluster import WatchedCluster
from leases.actions import audit, deletion_runs
from leases.actions.deletion_runs import DeletionRun
from leases.actions.unanswered_writes import resolve, unanswered
from leases.wire.status import ApiError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class DeletionsAtWork:
    """The clusters that have a deletion which has not ended. One query serves all clusters."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._found: Collection[str] = ()

    async def in_cluster(self, name: str, *, now: bool) -> bool:
        """Whether it is one of them: `now`, else as of a moment ago. Raises DatabaseError."""
        async with self._asking:
            if now or time.monotonic() - self._asked_at > LOOK_SECONDS / 2:
                self._found = await self._in_thread(deletion_runs.clusters_at_work)
                self._asked_at = time.monotonic()
            return name in self._found


class Deletions:
    """Of one cluster, one after another: so it gets no more requests at once than one sends."""

    def __init__(
        self,
        cluster: WatchedCluster,
        *,
        process: str,
        in_thread: InThread,
        clock: Callable[[], datetime],
        at_work: DeletionsAtWork,
    ) -> None:
        self.process = process
        self._at_work = at_work
        self._cluster = cluster
        self._in_thread = in_thread
        self._clock = clock
        self._wake = asyncio.Event()
        self._running: DeletionRun | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """A deletion was started or is to stop. Any thread may call this."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._look)

    async def run(self) -> None:
        """Wait for deletions and run them. What an earlier run left is marked as interrupted."""
        self._loop = asyncio.get_running_loop()
        name, process, in_thread = self._cluster.name, self.process, self._in_thread
        await in_thread(partial(deletion_runs.interrupt_own, name, process, self._clock()))
        while True:
            woken = self._wake.is_set()
            self._wake.clear()
            try:
                deletion = None
                if await self._at_work.in_cluster(name, now=woken):
                    lost = partial(deletion_runs.interrupt_lost, name, process, self._clock())
                    await in_thread(lost)
                    deletion = await in_thread(partial(deletion_runs.next_of, name, process))
            except DatabaseError as error:
                logger.warning("%s: no deletion can be read just now: %s", name, error)
                deletion = None
            if deletion is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._wake.wait()
                continue
            self._running = DeletionRun(
                deletion,
                partial(self._cluster.writer_for, deletion.user),
                in_thread=in_thread,
                clock=self._clock,
            )
            await self._running.run()
            self._running = None
            self._wake.set()  # another one may wait

    def _look(self) -> None:
        self._wake.set()
        if self._running is not None:
            self._running.look.set()


UNANSWERED_LOOK_SECONDS = 5.0


async def resolve_unanswered(
    clusters: Mapping[str, WatchedCluster], now: Callable[[], datetime]
) -> None:
    """Look at the start and then again and again, until cancelled."""
    while True:
        try:
            await audit.save_unsaved()
            await resolve_once(clusters, now())
        except DatabaseError as error:
            logger.warning("Open rows of the audit trail cannot be read just now: %s", error)
        await asyncio.sleep(UNANSWERED_LOOK_SECONDS)


async def resolve_once(clusters: Mapping[str, WatchedCluster], now: datetime) -> None:
    """Resolve what the clusters that answer can prove; the other rows wait."""
    for row in await unanswered(clusters):
        client = clusters[row.cluster].client
        if client is None:
            continue
        try:
            verdict = await resolve(row, client, now=now)
        except ApiError as error:
            logger.info("The audit row %d waits: %s", row.pk, error)
            continue
        if verdict is not None:
            logger.info(
                "The audit row %d was left open: %s (%s)", row.pk, verdict.outcome, verdict.sentence
            )
