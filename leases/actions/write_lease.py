"""Write one Lease for a person: create, change or delete it, guarded by what the form showed.

Each attempt reads the Lease again and writes with its resourceVersion: a renewal in between is no
conflict; a take-over is, because the guard refuses it.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from leases.actions.audit import Intent, NothingWritten, answered, audited, sending
from leases.domain.edit import VERSION, Kept, LeaseWrite, leaves, not_taken, term_of
from leases.domain.lease import Lease, ObjectName
from leases.kube.lease_client import LeaseClient
from leases.models import Edit
from leases.wire.microtime import format_microtime
from leases.wire.status import ApiError, Conflict
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


ACTION = "lease.create"


class NewLease(msgspec.Struct, frozen=True, kw_only=True):
    """What a person typed. No holder means vacant, no duration means untimed."""

    key: ObjectName
    holder: str = ""
    duration_seconds: int | None = None
    strategy: str = ""
    preferred_holder: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def body_of(new: NewLease, *, now: datetime) -> dict[str, Any]:
    """Return the object to send.

    As client-go creates it (leaderelection.go, tryAcquireOrRenew): a holder acquires and renews
    now, and transitions start at 0. Nobody is written as "", never as null: a null holder beside a
    live LeaseCandidate has crashed a kube-apiserver.
    """
    spec: dict[str, Any] = {"holderIdentity": new.holder}
    if new.duration_seconds is not None:
        spec["leaseDurationSeconds"] = new.duration_seconds
    if new.holder:
        spec |= {"acquireTime": format_microtime(now), "renewTime": format_microtime(now)}
        spec["leaseTransitions"] = 0
    optional = {"strategy": new.strategy, "preferredHolder": new.preferred_holder}
    spec |= {name: value for name, value in optional.items() if value}
    metadata: dict[str, Any] = {"namespace": new.key.namespace, "name": new.key.name}
    maps = {"labels": dict(new.labels), "annotations": dict(new.annotations)}
    metadata |= {name: values for name, values in maps.items() if values}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


class Preview(msgspec.Struct, frozen=True):
    """The object that the server would store, its warnings, and the fields that it would drop."""

    after: dict[str, Any]
    warnings: tuple[str, ...]
    dropped: tuple[str, ...]


async def preview(client: LeaseClient, new: NewLease, *, now: datetime) -> Preview:
    """Ask the server with dryRun=All. Raises ApiError with its causes."""
    wanted = body_of(new, now=now)
    warnings: list[str] = []
    after = await client.raw_create(wanted, dry_run=True, warnings=warnings)
    kept = after.get("spec") or {}
    dropped = tuple(name for name in wanted["spec"] if name not in kept)
    return Preview(after, tuple(warnings), dropped)


async def create_lease(
    client: LeaseClient, new: NewLease, *, intent: Intent, clock: Callable[[], datetime]
) -> Lease:
    """Create the Lease with its audit row. Raises ApiError; AlreadyExists if there is one."""
    body = body_of(new, now=clock())
    wanted = {"metadata": body["metadata"], **body["spec"]}
    since = await client.newest_version()
    async with audited(intent, before=None, wanted=wanted, clock=clock) as row:
        await sending(row, "create", body, current=None, at=clock(), since=since)
        made = await client.create(body)
        answered(row, made)
    return made


DELETE = "lease.delete"
# retries after a conflict


class TermEnded(NothingWritten):
    """The term that the form showed has ended; `current` is the Lease now."""

    def __init__(self, current: Lease) -> None:
        super().__init__(f"{current.holder or 'Nobody'} holds it now. Nothing was deleted.")
        self.current = current


async def refusal_of(client: LeaseClient, lease: Lease) -> ApiError | None:
    """Ask the server with dryRun=All. Returns why it would not delete the Lease, or None."""
    try:
        await client.delete(lease.key, uid=lease.uid, dry_run=True)
    except ApiError as error:
        return error
    return None


async def delete_lease(
    client: LeaseClient,
    key: ObjectName,
    *,
    seen_term: str,
    intent: Intent,
    clock: Callable[[], datetime],
) -> Edit:
    """Delete, and return the closed audit row. Raises TermEnded, AlreadySent or ApiError.

    Each attempt reads the Lease again and deletes it with its uid and resourceVersion, as long as
    the term is the one that the form showed: a renewal in between is no conflict. NotFound: it is
    gone already.
    """
    current = await _read(client, key, seen_term)
    async with audited(intent, before=current, wanted={}, clock=clock) as row:
        for attempt in range(1, MAX_RETRIES + 2):
            await sending(row, "delete", {}, current=current, at=clock())
            try:
                await client.delete(key, uid=current.uid, resource_version=current.resource_version)
            except Conflict:
                if attempt > MAX_RETRIES:
                    raise
                current = await _read(client, key, seen_term)
            else:
                answered(row)
                row.detail = f"deleted at attempt {attempt}"
                break
    return row


async def _read(client: LeaseClient, key: ObjectName, seen_term: str) -> Lease:
    current = await client.get(key)
    if term_of(current) != seen_term:
        raise TermEnded(current)
    return current
