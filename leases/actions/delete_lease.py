"""Delete one Lease, if it is still the one that the form showed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from leases.actions.audit import Intent, NothingWritten, answered, audited, sending
from leases.domain.edit.term import term_of
from leases.domain.lease import Lease, ObjectName
from leases.kube.lease_client import LeaseClient
from leases.models import Edit
from leases.wire.status import ApiError, Conflict

ACTION = "lease.delete"
MAX_RETRIES = 3  # retries after a conflict


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
