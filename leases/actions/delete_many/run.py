"""Run one deletion: intents, requests, outcomes, a few Leases at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DatabaseError

from leases.actions.delete_many import records
from leases.actions.delete_many.choice import ChosenLease, unpack
from leases.actions.delete_many.requests import MAX_AT_ONCE, DeleteRequests
from leases.kube.lease_client import LeaseClient
from leases.models import Deletion

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class DeletionRun:
    """`look` makes it look at once whether somebody asked it to stop."""

    def __init__(
        self,
        deletion: Deletion,
        client: Callable[[], LeaseClient],
        *,
        in_thread: InThread,
        clock: Callable[[], datetime],
    ) -> None:
        self.deletion = deletion
        self.look = asyncio.Event()
        self._in_thread = in_thread
        self._clock = clock
        self._stopped = asyncio.Event()
        self._why = ""
        self._requests = DeleteRequests(client, stopped=self._stopped)

    async def run(self) -> None:
        """Delete until all were tried or somebody stops it."""
        deletion, in_thread = self.deletion, self._in_thread
        await in_thread(partial(records.begin, deletion, self._clock()))
        leases = unpack(bytes(deletion.chosen))
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat(), name=f"beat of deletion {deletion.pk}")
            for first in range(0, len(leases), MAX_AT_ONCE):
                await self._requests.ready()
                if self._stopped.is_set():
                    break
                await self._delete(leases[first : first + MAX_AT_ONCE])
            beating.cancel()
        stopped = self._stopped.is_set()
        state, why = (Deletion.STOPPED, self._why) if stopped else (Deletion.DONE, "")
        await in_thread(partial(records.end, deletion, state, self._clock(), why))
        logger.info("Deletion %d of %s: %s", deletion.pk, deletion.cluster, state)

    async def _delete(self, some: list[ChosenLease]) -> None:
        """Write the intents, send all requests at once, write the answers."""
        in_thread, now = self._in_thread, self._clock
        rows = await in_thread(partial(records.write_intents, self.deletion, some, now()))
        try:
            answers = await asyncio.gather(*map(self._requests.delete, some))
            await in_thread(partial(records.close_rows, rows, answers, now()))
        finally:
            records.let_go(rows)

    async def _beat(self) -> None:
        while not self._why:
            waits_for = self._requests.waits_for
            beat = partial(records.beat, self.deletion.pk, self._clock(), waits_for)
            try:
                self._why = await self._in_thread(beat)
            except DatabaseError as error:
                logger.warning("Deletion %d cannot be looked at: %s", self.deletion.pk, error)
            self.look.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_SECONDS):
                    await self.look.wait()
        self._stopped.set()
