"""Keeps the stores in step with what admins say of Leases, here or at another replica: kinds, and
which may be vacant; and with the kinds that history settles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from django.db import DatabaseError

from leases.history.kind_overrides import load
from leases.history.vacancy_marks import load_marks
from leases.tracking.kind_overrides import Kinds, Marks
from leases.tracking.tracker import Tracker

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # until a replica knows what was said at another

Overrides = tuple[Kinds, Marks]


class KindOverrides:
    """Of all clusters of the process."""

    def __init__(
        self, in_thread: Callable[[Callable[[], Overrides]], Awaitable[Overrides]]
    ) -> None:
        self._in_thread = in_thread
        self._trackers: dict[str, Tracker] = {}

    async def follow(self, cluster: str, tracker: Tracker) -> None:
        """Begin with what is stored of one cluster."""
        self._trackers[cluster] = tracker
        await self._refresh(cluster)

    async def refresh(self) -> None:
        """Take over what is stored now."""
        for cluster in self._trackers:
            await self._refresh(cluster)

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for tracker in self._trackers.values():
                tracker.settle_kinds()
            try:
                await self.refresh()
            except DatabaseError as error:
                logger.warning("The kinds that admins set cannot be read just now: %s", error)

    async def _refresh(self, cluster: str) -> None:
        kinds, marks = await self._in_thread(partial(_load, cluster))
        self._trackers[cluster].set_overrides(kinds, marks)


def _load(cluster: str) -> Overrides:
    return load(cluster), load_marks(cluster)
