"""Remove Events an hour after they were last written, as kube-apiserver's --event-ttl does.

After a restart the hour begins anew: the store does not know when its objects were written.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from leases.apiserver.failing import Failed
from leases.apiserver.registry.core.events import CORE_EVENTS
from leases.apiserver.storage.records import Version
from leases.apiserver.storage.store import ObjectStore, Plan

KEPT = 3600.0  # seconds
EVERY = 60.0
AT_ONCE = 500  # Events that are looked at, and removed, at a time
_EVENTS = CORE_EVENTS.plural


class EventExpiry:
    """Notes the revision of the store every minute: what is older than that of an hour ago goes.

    `monotonic` returns seconds. A write does no work for it.
    """

    def __init__(
        self, store: ObjectStore, failed: Failed, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._failed = failed
        self._monotonic = monotonic
        self._marks = deque([(monotonic(), store.revision)])
        self._task = asyncio.create_task(self._run(), name="expire events")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.expire()
            except Exception as error:
                self._failed("event expiry", error)

    async def expire(self) -> None:
        """Remove every Event that was not written for KEPT seconds."""
        now, old = self._monotonic(), 0
        self._marks.append((now, self._store.revision))
        while self._marks[0][0] <= now - KEPT:
            _, old = self._marks.popleft()
        keys = list(self._store.keys(_EVENTS)) if old else []
        for start in range(0, len(keys), AT_ONCE):
            await self._remove(keys[start : start + AT_ONCE], old)

    async def _remove(self, keys: list[str], old: int) -> None:
        """Remove those of these Events that are not newer than the revision `old`."""
        found = (self._store.get(_EVENTS, *key.split("/")) for key in keys)
        writes = [
            self._store.write(_EVENTS, one.namespace, one.name, partial(_removal, one.revision))
            for one in found
            if one is not None and one.revision <= old
        ]
        # Other requests have their turn between two slices.
        await asyncio.gather(asyncio.sleep(0), *writes)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def _removal(revision: int, existing: Version | None) -> Plan:
    return Plan(remove=existing is not None and existing.revision == revision)
