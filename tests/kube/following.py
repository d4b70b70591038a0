"""Follows a reflector until something has happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from leases.kube.backoff import Backoff
from leases.kube.client import LeaseClient
from leases.kube.reflector import reflect
from leases.wire.events import Applied, Bookmark, Deleted, Listed, ReflectorEvent, Replayed

LIMIT = 10.0  # seconds until a test gives up


async def follow(
    client: LeaseClient,
    backoff: Backoff,
    *,
    until: Callable[[list[ReflectorEvent]], Any],
    since: str | None = None,
) -> list[ReflectorEvent]:
    """The events up to the one that makes `until` true."""
    seen: list[ReflectorEvent] = []
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflect(client, since=since, backoff=backoff)) as events,
    ):
        async for event in events:
            seen.append(event)
            if until(seen):
                break
    return seen


def applied(name: str) -> Callable[[list[ReflectorEvent]], bool]:
    """Until this Lease was applied."""
    return lambda seen: isinstance(seen[-1], Applied) and seen[-1].lease.key.name == name


def told(events: list[ReflectorEvent]) -> list[str]:
    """The events as words: `Listed 2`, `Applied a@7`, `Connected`."""
    return [_word(event) for event in events]


def _word(event: ReflectorEvent) -> str:
    if isinstance(event, Replayed):
        return f"Replayed {_word(event.event)}"
    if isinstance(event, Applied | Deleted):
        return f"{type(event).__name__} {event.lease.key.name}@{event.lease.resource_version}"
    if isinstance(event, Listed):
        return f"Listed {len(event.leases)} {event.reason}"
    if isinstance(event, Bookmark):
        return f"Bookmark {event.resource_version}"
    return type(event).__name__
