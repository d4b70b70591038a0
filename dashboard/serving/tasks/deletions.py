"""Run the deletions of many Leases that were started at this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DatabaseError

from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.actions.delete_many import records
from leases.actions.delete_many.run import DeletionRun

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class Deletions:
    """Of one cluster, one after another: so it gets no more requests at once than one sends."""

    def __init__(
        self,
        cluster: WatchedCluster,
        *,
        process: str,
        in_thread: InThread,
        clock: Callable[[], datetime],
    ) -> None:
        self.process = process
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
        await in_thread(partial(records.interrupt_own, name, process, self._clock()))
        while True:
            self._wake.clear()
            try:
                await in_thread(partial(records.interrupt_lost, name, process, self._clock()))
                deletion = await in_thread(partial(records.next_of, name, process))
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

    def _look(self) -> None:
        self._wake.set()
        if self._running is not None:
            self._running.look.set()
