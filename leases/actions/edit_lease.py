"""Edit holderIdentity and leaseDurationSeconds: a dry run to look at, then the write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from leases.actions.audit import Intent, audited
from leases.domain.edit import Edit, merge_patch, term_of
from leases.domain.lease import Lease, ObjectName
from leases.kube.client import LeaseClient
from leases.wire.status import Conflict

ACTION = "lease.edit"
ATTEMPTS = 3


class TermMoved(Exception):
    """Somebody else holds the Lease than when the form was drawn; `current` says who."""

    def __init__(self, current: Lease) -> None:
        super().__init__(f"The Lease is held by {current.holder or 'nobody'} now.")
        self.current = current


class Preview(msgspec.Struct, frozen=True):
    """What the server would make of an edit, and what there is now."""

    before: dict[str, Any]
    after: dict[str, Any]


async def preview(
    client: LeaseClient, key: ObjectName, wanted: Edit, *, seen_term: str, now: datetime
) -> Preview:
    """Ask the server with dryRun=All. Raises TermMoved, or ApiError with its causes."""
    before = await client.raw_get(key)
    current = msgspec.convert(before, Lease, strict=False)
    _check_term(current, seen_term)
    patch = merge_patch(current, wanted, now=now)
    return Preview(before, await client.raw_patch(key, patch, dry_run=True))


async def edit_lease(
    client: LeaseClient,
    wanted: Edit,
    *,
    intent: Intent,
    seen_term: str,
    clock: Callable[[], datetime],
) -> None:
    """Write the edit and its audit row.

    A renewal between reading and writing is no conflict of ours: read again and try again, as
    long as the
    term is the one that was shown. Raises TermMoved, or ApiError.
    """
    current = await client.get(intent.key)
    _check_term(current, seen_term)
    wanted_facts = msgspec.to_builtins(wanted)
    async with audited(intent, before=current, wanted=wanted_facts) as row:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await client.patch(intent.key, merge_patch(current, wanted, now=clock()))
            except Conflict:
                if attempt == ATTEMPTS:
                    raise
                current = await client.get(intent.key)
                _check_term(current, seen_term)
            else:
                row.detail = f"written at attempt {attempt}"
                return


def _check_term(current: Lease, seen_term: str) -> None:
    if term_of(current) != seen_term:
        raise TermMoved(current)
