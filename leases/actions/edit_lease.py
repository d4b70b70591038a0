"""Edit holderIdentity and leaseDurationSeconds: first a dry run, then the write."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from leases.actions.audit import Intent, audited
from leases.domain.lease import Lease, ObjectName
from leases.domain.lease_edit import LeaseEdit, merge_patch, term_of
from leases.kube.lease_client import LeaseClient
from leases.wire.status import Conflict
from leases.wire.watch_decoding import lease_of

ACTION = "lease.edit"
MAX_RETRIES = 3  # retries after a conflict

T = TypeVar("T")


class TermMoved(Exception):
    """The holder changed since the form was drawn; `current` is the Lease now."""

    def __init__(self, current: Lease) -> None:
        super().__init__(f"The Lease is held by {current.holder or 'nobody'} now.")
        self.current = current


class Preview(msgspec.Struct, frozen=True):
    """The result of a dry run, and the current Lease."""

    before: dict[str, Any]
    after: dict[str, Any]


async def preview(
    client: LeaseClient, key: ObjectName, wanted: LeaseEdit, *, seen_term: str, now: datetime
) -> Preview:
    """Ask the server with dryRun=All. Raises TermMoved, or ApiError with its causes."""

    async def dry_run() -> Preview:
        before = await client.raw_get(key)
        current = lease_of(before)
        _check_term(current, seen_term)
        patch = merge_patch(current, wanted, now=now)
        return Preview(before, await client.raw_patch(key, patch, dry_run=True))

    _, seen = await _retry(dry_run)
    return seen


async def edit_lease(
    client: LeaseClient,
    wanted: LeaseEdit,
    *,
    intent: Intent,
    seen_term: str,
    clock: Callable[[], datetime],
) -> None:
    """Write the edit and its audit row. Raises TermMoved, or ApiError.

    Each attempt reads the Lease again and writes with its resourceVersion, as long as the term is
    the one that the form showed: a renewal in between is no conflict, a take-over is.
    """
    current = await client.get(intent.key)
    _check_term(current, seen_term)
    unread: list[Lease] = [current]

    async def write() -> Lease:
        latest = unread.pop() if unread else await client.get(intent.key)
        _check_term(latest, seen_term)
        return await client.patch(intent.key, merge_patch(latest, wanted, now=clock()))

    fields = msgspec.to_builtins(wanted)
    async with audited(intent, before=current, wanted=fields, clock=clock) as row:
        attempt, _ = await _retry(write)
        row.detail = f"written at attempt {attempt}"


async def _retry(step: Callable[[], Awaitable[T]]) -> tuple[int, T]:
    """Repeat a step after a conflict (409). Returns the number of the attempt and its result."""
    for attempt in range(1, MAX_RETRIES + 1):
        with contextlib.suppress(Conflict):
            return attempt, await step()
    return MAX_RETRIES + 1, await step()


def _check_term(current: Lease, seen_term: str) -> None:
    if term_of(current) != seen_term:
        raise TermMoved(current)
