"""Write one Lease for a person: guarded by what the form showed, tried again after a renewal.

Each attempt reads the Lease again and writes with its resourceVersion: a renewal in between is no
conflict; a take-over is, because the guard refuses it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from leases.actions.audit import Intent, NothingWritten, answered, audited, sending
from leases.domain.edit.lease_write import LeaseWrite
from leases.domain.edit.merge_patch import VERSION, Kept, leaves, not_taken
from leases.domain.edit.term import term_of
from leases.domain.lease import Lease, ObjectName
from leases.kube.lease_client import LeaseClient
from leases.models import Edit
from leases.wire.status import Conflict
from leases.wire.watch_decoding import lease_of

MAX_RETRIES = 3  # retries after a conflict

T = TypeVar("T")
# Gets the Lease as it is now, whole and decoded. Raises Refused if it may not be written.
Guard = Callable[[dict[str, Any], Lease], None]


class Moved(NothingWritten):
    """The Lease is not as the form showed it; `current` is the Lease now."""

    def __init__(self, current: dict[str, Any]) -> None:
        super().__init__("The Lease is not as the form showed it. Nothing was written.")
        self.current = current
        self.lease = lease_of(current)


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The server's answer to a dry run. `not_taken`: fields that it would leave as they are."""

    before: dict[str, Any]
    after: dict[str, Any]
    patch: dict[str, Any]
    warnings: tuple[str, ...]
    not_taken: tuple[Kept, ...]


class Refused(Exception):
    """A guard refuses to write to the Lease as it is now."""


def same_term(seen: str) -> Guard:
    """A guard that refuses any other term."""

    def guard(_: dict[str, Any], current: Lease) -> None:
        if term_of(current) != seen:
            raise Refused

    return guard


async def dry_run(
    client: LeaseClient, key: ObjectName, write: LeaseWrite, *, guard: Guard, now: datetime
) -> DryRun:
    """Ask the server with dryRun=All. Raises Moved, or ApiError with its causes."""

    async def step() -> DryRun:
        before, patch = await _prepare(client, key, write, guard=guard, now=now)
        warnings: list[str] = []
        after = await client.raw_patch(key, patch, dry_run=True, warnings=warnings)
        return DryRun(
            before=before,
            after=after,
            patch=patch,
            warnings=tuple(warnings),
            not_taken=not_taken(patch, after),
        )

    _, verdict = await _retry(step)
    return verdict


async def write_lease(
    client: LeaseClient,
    write: LeaseWrite,
    *,
    intent: Intent,
    guard: Guard,
    clock: Callable[[], datetime],
) -> Edit:
    """Write, and return the closed audit row. Raises Moved, AlreadySent, or ApiError."""
    first = await _prepare(client, intent.key, write, guard=guard, now=clock())
    unused = [first]
    wanted = {".".join(path): value for path, value in leaves(first[1]) if path != VERSION}
    async with audited(intent, before=lease_of(first[0]), wanted=wanted, clock=clock) as row:

        async def step() -> Lease:
            current, patch = (
                unused.pop()
                if unused
                else await _prepare(client, intent.key, write, guard=guard, now=clock())
            )
            await sending(row, "patch", patch, current=current, at=clock())
            return lease_of(await client.raw_patch(intent.key, patch))

        attempt, written = await _retry(step)
        answered(row, written)
        row.detail = f"written at attempt {attempt}"
    return row


async def _prepare(
    client: LeaseClient, key: ObjectName, write: LeaseWrite, *, guard: Guard, now: datetime
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the Lease; return it with the patch for it. Raises Moved."""
    before = await client.raw_get(key)
    current = lease_of(before)
    try:
        guard(before, current)
    except Refused:
        raise Moved(before) from None
    patch = write.patch(current, now=now)
    version = {"resourceVersion": current.resource_version}
    return before, patch | {"metadata": patch.get("metadata", {}) | version}


async def _retry(step: Callable[[], Awaitable[T]]) -> tuple[int, T]:
    """Repeat a step after a conflict (409). Returns the number of the attempt and its result."""
    for attempt in range(1, MAX_RETRIES + 1):
        with contextlib.suppress(Conflict):
            return attempt, await step()
    return MAX_RETRIES + 1, await step()
