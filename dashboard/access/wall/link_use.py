"""When each wall link was last used and each person last seen, written once a minute: opening a
page must not wait for a write, and a screen that is open uses its link all the time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime
from functools import partial

from django.db import Error

from dashboard import clock
from dashboard.access.people.last_seen import SEEN, write_seen
from leases.models import WallLink

logger = logging.getLogger(__name__)

WRITE_SECONDS = 60.0


class LinkUse:
    """The links that were used since the last write."""

    def __init__(
        self,
        in_thread: Callable[[Callable[[], int]], Awaitable[int]],
        open_now: Callable[[], Collection[int]],
    ) -> None:
        self._in_thread = in_thread
        self._open_now = open_now
        self._used: set[int] = set()

    def note(self, link_id: int) -> None:
        """Somebody opened a wall by this link. Any thread may call this."""
        self._used.add(link_id)

    async def run(self) -> None:
        """Write again and again, until cancelled."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()

    async def write(self) -> None:
        """What cannot be written now, as on a full disk, is written with the next."""
        used, self._used = self._used, set()
        used = used.union(self._open_now())
        seen = set(SEEN)
        SEEN.difference_update(seen)
        if not used and not seen:
            return
        try:
            await self._in_thread(partial(_write, used, seen, clock.now()))
        except Exception as error:
            self._used |= used
            SEEN.update(seen)
            if not isinstance(error, Error):
                raise
            logger.info("When wall links were used cannot be written just now: %s", error)


def _write(used: Collection[int], seen: Collection[int], now: datetime) -> int:
    write_seen(seen, now)
    return WallLink.objects.filter(pk__in=used).update(last_used_at=now)
