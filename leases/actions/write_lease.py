"""Write one Lease for a person: create, change or delete it, guarded by what the form showed.

Each attempt reads the Lease again and writes with its resourceVersion: a renewal in between is no
conflict; a take-over is, because the guard refuses it.
"""

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from leases.actions.audit import Intent, NothingWritten, answered, audited, sending
from leases.domain import edit
from leases.domain.lease import Lease, ObjectName
from leases.kube.lease_client import LeaseClient
from leases.models import Edit
from leases.wire.status import Conflict
from leases.wire.watch_decoding import lease_of

MAX_RETRIES = 3  # retries after a conflict

T = TypeVar("T")
# Gets the Lease as it is now, whole and decoded. Raises Refused if it may not be written.
Guard = Callable[[dict[str, Any], Lease], None]
DETAILS = {"create": "", "patch": "written at attempt {}", "delete": "deleted at attempt {}"}


class Refused(Exception):
    """A guard refuses to write to the Lease as it is now."""


class Moved(NothingWritten):
    """The Lease is not as the form showed it; `current` is the Lease now."""

    def __init__(self, current: dict[str, Any]) -> None:
        super().__init__("The Lease is not as the form showed it. Nothing was written.")
        self.current = current
        self.lease = lease_of(current)


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The server's answer to a dry run. `not_taken`: fields that it would leave as they are.

    `before` is empty for a create, `after` for a delete; `sent` is what was sent.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    sent: dict[str, Any]
    warnings: tuple[str, ...]
    not_taken: tuple[edit.Kept, ...]


async def dry_run(
    client: LeaseClient, key: ObjectName, write: edit.LeaseWrite, *, guard: Guard, now: datetime
) -> DryRun:
    """Ask the server with dryRun=All. Raises Moved, or ApiError with its causes."""

    async def step() -> DryRun:
        attempt = await _prepare(client, key, write, guard=guard, now=now)
        warnings: list[str] = []
        after = await _send(client, key, attempt, dry_run=True, warnings=warnings)
        return DryRun(
            before=attempt.before,
            after=after,
            sent=attempt.body,
            warnings=tuple(warnings),
            not_taken=edit.not_taken(attempt.body, after),
        )

    _, verdict = await _retry(step)
    return verdict


async def write_lease(
    client: LeaseClient,
    write: edit.LeaseWrite,
    *,
    intent: Intent,
    guard: Guard,
    clock: Callable[[], datetime],
) -> Edit:
    """Write, and return the closed audit row. Raises Moved, AlreadySent, or ApiError.

    AlreadyExists: there is such a Lease. NotFound: it is gone.
    """
    first = await _prepare(client, intent.key, write, guard=guard, now=clock())
    since = "" if first.before else await client.newest_version()
    unused = [first]
    async with audited(intent, before=first.lease, wanted=first.wanted, clock=clock) as row:

        async def step() -> Lease | None:
            attempt = (
                unused.pop()
                if unused
                else await _prepare(client, intent.key, write, guard=guard, now=clock())
            )
            body, verb = attempt.body, write.verb
            await sending(row, verb, body, current=attempt.lease, at=clock(), since=since)
            written = await _send(client, intent.key, attempt)
            return lease_of(written) if written else None

        tries, written = await _retry(step)
        answered(row, written)
        row.detail = DETAILS[write.verb].format(tries)
    return row


class _Attempt(msgspec.Struct, frozen=True):
    """One request and what was read for it: nothing for a new Lease. A delete has no body."""

    before: dict[str, Any]
    body: dict[str, Any]
    lease: Lease | None = None

    @property
    def wanted(self) -> dict[str, Any]:
        """The fields of the intent: those of a new Lease, or those that change."""
        if self.lease is None:
            return {"metadata": self.body["metadata"], **self.body["spec"]}
        changed = edit.leaves(self.body)
        return {".".join(path): value for path, value in changed if path != edit.VERSION}


async def _prepare(
    client: LeaseClient, key: ObjectName, write: edit.LeaseWrite, *, guard: Guard, now: datetime
) -> _Attempt:
    """Read the Lease, unless it is new, and make the request for it. Raises Moved."""
    if isinstance(write, edit.NewLease):
        return _Attempt({}, write.body(now=now))
    before = await client.raw_get(key)
    current = lease_of(before)
    try:
        guard(before, current)
    except Refused:
        raise Moved(before) from None
    if isinstance(write, edit.Delete):
        return _Attempt(before, {}, current)
    patch = write.patch(current, now=now)
    version = {"resourceVersion": current.resource_version}
    return _Attempt(before, patch | {"metadata": patch.get("metadata", {}) | version}, current)


async def _send(
    client: LeaseClient,
    key: ObjectName,
    attempt: _Attempt,
    *,
    dry_run: bool = False,
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """Return the Lease as it is then; nothing of a deleted one."""
    body, current = attempt.body, attempt.lease
    if current is None:
        return await client.raw_create(body, dry_run=dry_run, warnings=warnings)
    if body:
        return await client.raw_patch(key, body, dry_run=dry_run, warnings=warnings)
    uid, version = current.uid, current.resource_version
    await client.delete(key, uid=uid, resource_version=version, dry_run=dry_run)
    return {}


async def _retry(step: Callable[[], Awaitable[T]]) -> tuple[int, T]:
    """Repeat a step after a conflict (409). Returns the number of the attempt and its result."""
    for attempt in range(1, MAX_RETRIES + 1):
        with contextlib.suppress(Conflict):
            return attempt, await step()
    return MAX_RETRIES + 1, await step()
