"""Follows a reflector until something has happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Container, Sequence
from typing import Any

from leases.domain.lease import Lease
from leases.kube.backoff import Backoff
from leases.kube.lease_client import PAGE, LeaseClient
from leases.kube.reflector import reflect
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Bookmark,
    Deleted,
    Listed,
    ListPage,
    ReflectorEvent,
    Replayed,
)

LIMIT = 30.0  # seconds until a test gives up


async def follow(
    client: LeaseClient,
    backoff: Backoff,
    *,
    until: Callable[[list[ReflectorEvent]], Any],
    since: str | None = None,
    idle: Callable[[], bool] = bool,
    known: Container[int] = (),
) -> list[ReflectorEvent]:
    """The events up to the one that makes `until` true."""
    seen: list[ReflectorEvent] = []
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(
            reflect(client, since=since, backoff=backoff, idle=idle, known=known)
        ) as events,
    ):
        async for event in events:
            for one in each(event):
                seen.append(one)
                if until(seen):
                    return seen
    return seen


def each(event: ReflectorEvent) -> Sequence[ReflectorEvent]:
    """What one reading brought, one by one."""
    if isinstance(event, Replayed):
        return [Replayed((one,)) for one in event.events]
    return event.events if isinstance(event, Arrived) else (event,)


async def list_whole(client: LeaseClient, *, limit: int = PAGE) -> Listed:
    """The list as if it had come as one page."""
    leases: list[Lease] = []
    async with contextlib.aclosing(client.list(limit=limit)) as pages:
        async for page in pages:
            leases += page.leases
            version = page.resource_version
    return Listed(tuple(leases), version)


def applied(name: str) -> Callable[[list[ReflectorEvent]], bool]:
    """Until this Lease was applied."""
    return lambda seen: isinstance(seen[-1], Applied) and seen[-1].lease.key.name == name


def words_of(events: list[ReflectorEvent]) -> list[str]:
    """The events as words: `Listed 2`, `Applied a@7`, `Connected`."""
    return [_word(one) for event in events for one in each(event)]


def _word(event: ReflectorEvent) -> str:
    if isinstance(event, Replayed):
        return " ".join(["Replayed", *map(_word, event.events)])
    if isinstance(event, Applied | Deleted):
        return f"{type(event).__name__} {event.lease.key.name}@{event.lease.resource_version}"
    if isinstance(event, ListPage):
        return f"Page {len(event.leases)}"
    if isinstance(event, Listed):
        return f"Listed {len(event.leases)} {event.reason}"
    if isinstance(event, Bookmark):
        return f"Bookmark {event.resource_version}"
    return type(event).__name__
