"""List, then watch, for ever: a cluster's Leases as one stream of events.

Source: k8s.io/client-go/tools/cache/reflector.go (ListAndWatch, handleAnyWatch).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from leases.domain.lease import number_of
from leases.kube.backoff import Backoff
from leases.kube.client import LeaseClient
from leases.kube.watching import check_not_past, version_of
from leases.wire.events import (
    Bookmark,
    Connected,
    Disconnected,
    Listed,
    ReflectorEvent,
    Replayed,
    WatchEvent,
)
from leases.wire.status import ApiError, Forbidden, Gone, Status, Unauthorized, Unreachable

logger = logging.getLogger(__name__)

WATCH_SECONDS = (300, 600)  # each watch lasts a random time between, as client-go's do
REPLAY_SECONDS = 30
LONGEST_RETRY_AFTER = 300.0


async def reflect(
    client: LeaseClient, *, since: str | None, backoff: Backoff
) -> AsyncGenerator[ReflectorEvent, None]:
    """Everything that happens to the cluster's Leases; only cancellation or closing ends it.

    `since` is the resourceVersion an earlier run reached: what the cluster still tells of the time
    up to the first list comes first, as Replayed. Close it (contextlib.aclosing) when done.
    """
    reflection = _Reflection(client, since)
    while True:
        try:
            async with contextlib.aclosing(reflection.catch_up()) as news:
                async for event in news:
                    yield event
            async with reflection.watch() as events:
                if reflection.reconnect():
                    yield Connected()
                async for seen in events:
                    reflection.version = version_of(seen)
                    backoff.reset()
                    yield seen
        except ApiError as error:
            refused = isinstance(error, Unauthorized | Forbidden)
            detail = client.advise(error)
            logger.warning("watch broke at resourceVersion %s: %s", reflection.version, detail)
            reflection.break_off(error)
            yield Disconnected(detail, refused)
            wanted = min(error.retry_after or 0.0, LONGEST_RETRY_AFTER)
            await asyncio.sleep(backoff.delay(at_least=wanted, refused=refused))


class _Reflection:
    """How far we have come: what the next try starts from."""

    def __init__(self, client: LeaseClient, since: str | None) -> None:
        self._client = client
        self._since = since
        self._reason = "start"
        self._connected = False
        self.version = ""  # empty: list first

    async def catch_up(self) -> AsyncGenerator[ReflectorEvent, None]:
        """What has to come before a watch: nothing, a check, or a list. Raises ApiError."""
        if self._connected:
            return
        if self.version:
            check_not_past(await self._client.newest_version(), self.version)
            return
        listed = await self._client.list()
        since, self._since = self._since, None
        if number_of(since) > number_of(listed.resource_version):
            self._reason = "restored"
        elif since:
            async with contextlib.aclosing(_replay(self._client, since, listed)) as news:
                async for replayed in news:
                    yield replayed
        self.version = listed.resource_version
        yield msgspec.structs.replace(listed, reason=self._reason)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """One watch from where we are. Raises ApiError, also when it ended as soon as it began."""
        loop = asyncio.get_running_loop()
        opened = loop.time()
        lasts = random.randint(*WATCH_SECONDS)  # noqa: S311 - spreads load, hides nothing
        async with self._client.watch(self.version, timeout_seconds=lasts) as events:
            yield events
        if loop.time() - opened < self._client.limits.short:
            sentence = f"{self._client.host} ended the watch as soon as it was open."
            raise Unreachable(Status(message=sentence))

    def reconnect(self) -> bool:
        """The watch is open; whether it was not before."""
        before, self._connected = self._connected, True
        return not before

    def break_off(self, error: ApiError) -> None:
        """The watch broke; after Gone only a list helps."""
        self._connected = False
        if isinstance(error, Gone):
            self.version, self._reason = "", "gone"


async def _replay(
    client: LeaseClient, since: str, listed: Listed
) -> AsyncGenerator[Replayed, None]:
    """What happened between `since` and the list, as far as the cluster still knows."""
    until = number_of(listed.resource_version)
    if number_of(since) == until:
        return
    try:
        async with client.watch(since, timeout_seconds=REPLAY_SECONDS) as events:
            while True:
                async with asyncio.timeout(client.limits.replay):
                    event = await anext(events, None)
                if event is None or number_of(version_of(event)) > until:
                    return
                if not isinstance(event, Bookmark):
                    yield Replayed(event)
                if number_of(version_of(event)) == until:
                    return
    except (ApiError, TimeoutError) as error:
        logger.info("nothing more to replay since resourceVersion %s: %s", since, error)
