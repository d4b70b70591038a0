"""Keeps history as long, and as short, as it was asked to be kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, connection

from leases.history.read.find_changes import known_clusters
from leases.history.refused_rows import forget_refused
from leases.history.write.incident_retention import forget_incidents, forgettable_incidents
from leases.history.write.recorder import Recorder
from leases.history.write.retention import cut_of_rows, forget, forget_watches, forgettable
from leases.history.write.security_retention import forget_security

logger = logging.getLogger(__name__)

Look = Callable[..., Awaitable[Any]]
ALL = datetime.max.replace(tzinfo=UTC)
PAUSE = 0.02  # seconds between two batches, in which changes are written


class Forgetting:
    """What may go is looked for in a thread of its own, and forgotten in the recorder's, between
    its own writes."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        days: int,
        rows: int,
        doubtful: Callable[[], bool] = bool,
        counted_until: Callable[[str], datetime] = lambda _: ALL,
    ) -> None:
        """`doubtful` says that the clock may be wrong, so that no row's age is known.
        `counted_until`: the moment from which the totals of a cluster still need its changes.
        """
        self._recorder = recorder
        self._days = timedelta(days=days)
        self._rows = rows
        self._doubtful = doubtful
        self._counted_until = counted_until
        self._reached: dict[str, datetime] = {}  # the cut up to which all is done

    async def run(self, now: datetime) -> int:
        """One round; how many changes it forgot. What fails is tried again in the next."""
        if self._doubtful():
            logger.warning("No old changes are forgotten: the clock was lately set far ahead")
            return 0
        total, old = 0, now - self._days
        with ThreadPoolExecutor(1, thread_name_prefix="forgetting") as thread:
            look: Look = partial(asyncio.get_running_loop().run_in_executor, thread)
            try:
                await self._recorder.in_thread(partial(forget_refused, old))
                gone = 1
                while gone:
                    gone = await self._recorder.in_thread(partial(forget_security, now))
                    await asyncio.sleep(PAUSE)
                cut = max(old, await look(cut_of_rows, self._rows) or old)
                for cluster in await look(known_clusters):
                    counted = await look(self._counted_until, cluster)
                    total += await self._forget(cluster, min(cut, counted), look)
                    watches = min(old, counted)
                    await self._recorder.in_thread(partial(forget_watches, cluster, watches))
                    for batch in await look(forgettable_incidents, cluster, old):
                        await self._recorder.in_thread(partial(forget_incidents, cluster, batch))
                        await asyncio.sleep(PAUSE)
            except DatabaseError:
                logger.exception("Old changes could not be forgotten; trying again in an hour")
            finally:
                await look(_let_go)
        if total:
            logger.info("Forgot %d changes of before %s", total, cut.isoformat())
        return total

    async def _forget(self, cluster: str, cut: datetime, look: Look) -> int:
        batches = forgettable(cluster, cut, since=self._reached.get(cluster))
        total = 0
        while (batch := await look(next, batches, None)) is not None:
            if batch:
                total += await self._recorder.in_thread(partial(forget, cluster, batch))
            await asyncio.sleep(PAUSE)
        self._reached[cluster] = cut
        return total


def _let_go() -> None:
    """Close the connection of the thread that runs this."""
    connection.close()
