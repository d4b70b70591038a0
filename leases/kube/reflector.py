"""List, then watch, for ever: a cluster's Leases as one stream of events.

Source: k8s.io/client-go/tools/cache/reflector.go (ListAndWatch, handleAnyWatch).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Container, Sequence

import msgspec

from leases.domain.lease import number_of
from leases.kube.backoff import Backoff
from leases.kube.early_watch import Ahead, watch_ahead
from leases.kube.lease_client import LeaseClient
from leases.kube.open_watch import check_not_past
from leases.wire.status import ApiError, Forbidden, Gone, Status, Unauthorized, Unreachable
from leases.wire.watch_events import (
    Applied,
    Arrived,
    Connected,
    Deleted,
    Disconnected,
    Listed,
    ListPage,
    ReflectorEvent,
    Replayed,
    Unreadable,
    WatchEvent,
)

logger = logging.getLogger(__name__)

WATCH_SECONDS = (300, 600)  # each watch lasts a random time between, as client-go's do
REPLAY_SECONDS = 30
REPLAY_TRIES = 3  # what a cut connection did not tell is asked for again
MAX_RETRY_AFTER = 300.0


async def reflect(
    client: LeaseClient,
    *,
    since: str | None,
    backoff: Backoff,
    known: Container[int] = (),
    resume: bool = False,
) -> AsyncGenerator[ReflectorEvent, None]:
    """Everything that happens to the cluster's Leases; only cancellation or closing ends it.

    `since` is the resourceVersion an earlier run reached: what the cluster still tells of the time
    up to the first list comes first, as Replayed. What it still tells after a 410 comes as if the
    watch had not broken. What has one of the `known` marks comes as Renewed. Close it
    (contextlib.aclosing) when done. With `resume` this run has reached `since` itself, and has a
    complete list: the watch goes on there.
    """
    reflection = _Reflection(client, since, known)
    if resume and since:
        reflection.version = since
    while True:
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with contextlib.aclosing(reflection.catch_up(stack)) as news:
                    async for event in news:
                        yield event
                readings = await stack.enter_async_context(reflection.watch())
                if reflection.reconnect():
                    yield Connected(reflection.unprocessed_seconds)
                async for events in readings:
                    reflection.version = events[-1].resource_version
                    backoff.reset()
                    yield Arrived(events)
        except ApiError as error:
            refused = isinstance(error, Unauthorized | Forbidden)
            detail = client.advise(error)
            logger.warning("watch broke at resourceVersion %s: %s", reflection.version, detail)
            reflection.break_off(error)
            yield Disconnected(detail, refused)
            wanted = min(error.retry_after or 0.0, MAX_RETRY_AFTER)
            await asyncio.sleep(backoff.delay(at_least=wanted, refused=refused))


class _Reflection:
    """How far we have come: what the next try starts from."""

    def __init__(self, client: LeaseClient, since: str | None, known: Container[int]) -> None:
        self._client = client
        self._known = known
        self._known_version = (
            since or ""
        )  # up to here everything is known, by an earlier run or by us
        self._ours = False
        self._reason = "start"
        self._connected = False
        self._ahead: Ahead | None = None  # the watch, where it is open before the list is complete
        self.version = ""  # empty: list first

    async def catch_up(
        self, stack: contextlib.AsyncExitStack
    ) -> AsyncGenerator[ReflectorEvent, None]:
        """What has to come before a watch: nothing, a check, or a list. Raises ApiError.

        On the `stack` stays what is opened for the watch already.
        """
        self._ahead = None
        if self._connected:
            return
        if self.version:
            check_not_past(await self._client.newest_version(), self.version)
            return
        for last_try in (False, True):
            try:
                async with contextlib.aclosing(self._list(stack)) as news:
                    async for event in news:
                        yield event
                return
            except Gone:  # the continue token ran out
                await stack.aclose()
                self._ahead = None
                if last_try:
                    raise

    async def _list(self, stack: contextlib.AsyncExitStack) -> AsyncGenerator[ReflectorEvent, None]:
        """The time between what was told and the list, as far as it can be had; then the list."""
        begun = False
        async with contextlib.aclosing(self._client.list()) as pages:
            async for page in pages:
                age = 0.0
                if not begun and self._known_version:
                    came = time.monotonic()
                    async with contextlib.aclosing(self._past(page.resource_version)) as news:
                        async for event in news:
                            yield event
                    age = time.monotonic() - came
                if not begun and isinstance(page, ListPage):
                    self._ahead = await stack.enter_async_context(
                        watch_ahead(
                            self._client,
                            page.resource_version,
                            timeout_seconds=_lasting(),
                            known=self._known,
                        )
                    )
                begun = True
                if isinstance(page, Listed):
                    self.version = page.resource_version
                    yield msgspec.structs.replace(page, reason=self._reason, age=age)
                    return
                yield msgspec.structs.replace(page, age=age)
                await asyncio.sleep(0)  # the next page may be here already; others wait too

    async def _past(self, until: str) -> AsyncGenerator[ReflectorEvent, None]:
        """What happened up to the state of a list, as far as the cluster still knows."""
        since, self._known_version = self._known_version, until
        if number_of(since) > number_of(until):
            self._reason = "gone" if self._ours else "restored"
        elif number_of(since) < number_of(until):
            async with contextlib.aclosing(_between(self._client, since, number_of(until))) as past:
                async for events in past:
                    if self._ours:
                        yield Arrived(events)
                        continue
                    for event in events:
                        if isinstance(event, Applied | Deleted | Unreadable):
                            yield Replayed(event)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Sequence[WatchEvent]]]:
        """One watch from where we are. Raises ApiError, also when it ended as soon as it began."""
        if self._ahead is not None:
            async with contextlib.aclosing(self._ahead.follow()) as readings:
                yield readings
            return
        loop = asyncio.get_running_loop()
        opened = loop.time()
        async with self._client.watch(
            self.version, timeout_seconds=_lasting(), known=self._known
        ) as readings:
            yield readings
        if loop.time() - opened < self._client.limits.short:
            sentence = f"{self._client.host} ended the watch as soon as it was open."
            raise Unreachable(Status(message=sentence))

    def unprocessed_seconds(self) -> float:
        """For how many seconds at most something of the watch has not been told."""
        ahead = 0.0 if self._ahead is None else self._ahead.unprocessed_seconds()
        return max(ahead, self._client.unprocessed_seconds())

    def reconnect(self) -> bool:
        """The watch is open; whether it was not before."""
        before, self._connected = self._connected, True
        return not before

    def break_off(self, error: ApiError) -> None:
        """The watch broke; after Gone only a list helps."""
        self._connected = False
        if isinstance(error, Gone):
            if self.version:
                self._known_version, self._ours = self.version, True
            self.version, self._reason = "", "gone"


def _lasting() -> int:
    """How many seconds a watch is to last."""
    return random.randint(*WATCH_SECONDS)  # noqa: S311 - spreads load, hides nothing


async def _between(
    client: LeaseClient, since: str, until: int
) -> AsyncGenerator[Sequence[WatchEvent], None]:
    """What the cluster still tells of the time between two resourceVersions."""
    for _ in range(REPLAY_TRIES):
        try:
            async with client.watch(since, timeout_seconds=REPLAY_SECONDS) as readings:
                while True:
                    async with asyncio.timeout(client.limits.replay):
                        events = await anext(readings, None)
                    if events is None:
                        return
                    since = events[-1].resource_version
                    known = [one for one in events if number_of(one.resource_version) <= until]
                    if known:
                        yield known
                    if number_of(since) >= until:
                        return
                    await asyncio.sleep(0)
        except (Gone, TimeoutError) as error:
            logger.info("nothing more to replay since resourceVersion %s: %s", since, error)
            return
        except ApiError as error:
            logger.info("the replay broke at resourceVersion %s: %s", since, error)
