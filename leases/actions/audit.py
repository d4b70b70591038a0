"""The audit trail: a row with the intent before the call, closed with the outcome after it.

If the process dies in between, the row stays open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.auth.models import User
from django.db import IntegrityError

from leases.domain.lease import Lease, ObjectName
from leases.history.database_text import to_stored, to_stored_json
from leases.models import Edit
from leases.wire.status import ApiError

DONE, REFUSED, FAILED = "done", "refused", "failed"
_MAX_DETAIL = 1000


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to do what, and why."""

    user: User
    cluster: str
    key: ObjectName
    action: str  # namespaced: lease.edit
    reason: str
    at: datetime
    once: str = ""  # of the form that asked for it; "": it is not guarded against a resend


class AlreadySent(Exception):
    """This drawing of the form was sent before; `row` is what became of it."""

    def __init__(self, row: Edit) -> None:
        super().__init__("This form was sent before. Nothing was written a second time.")
        self.row = row


def as_facts(lease: Lease) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(lease.spec)
    return {name: value for name, value in facts.items() if value is not None}


def done_between(
    cluster: str, since: datetime, until: datetime
) -> dict[ObjectName, list[datetime]]:
    """Return when forms wrote to each Lease in a range, newest writes only."""
    rows = Edit.objects.filter(cluster=cluster, at__gte=since, at__lt=until, outcome=DONE)
    found: dict[ObjectName, list[datetime]] = {}
    for namespace, name, at in rows.order_by("-at").values_list("namespace", "name", "at")[
        :_MAX_DETAIL
    ]:
        found.setdefault(ObjectName(namespace, name), []).append(at)
    return found


@asynccontextmanager
async def audited(
    intent: Intent, *, before: Lease, wanted: dict[str, Any], clock: Callable[[], datetime]
) -> AsyncIterator[Edit]:
    """Write the open row, run the body, close the row. Records any error and raises it again.

    Raises AlreadySent, without running the body, if a row has the intent's `once`.
    """
    row = await _open_row(intent, before=before, wanted=wanted)
    try:
        yield row
    except ApiError as error:
        row.outcome = REFUSED if error.status.code else FAILED
        row.detail = to_stored(str(error))
        raise
    except BaseException as error:  # cancelled, or a bug: record that too
        row.outcome, row.detail = FAILED, to_stored(repr(error))
        raise
    else:
        row.outcome = DONE
    finally:
        row.closed_at = clock()
        await row.asave()


async def _open_row(intent: Intent, *, before: Lease, wanted: dict[str, Any]) -> Edit:
    row = Edit(
        at=intent.at,
        user=intent.user,
        username=intent.user.get_username(),
        cluster=intent.cluster,
        namespace=intent.key.namespace,
        name=intent.key.name,
        action=intent.action,
        reason=to_stored(intent.reason),
        before=to_stored_json(as_facts(before)),
        after=to_stored_json(wanted),
        once=intent.once or None,
    )
    try:
        await row.asave(force_insert=True)
    except IntegrityError:
        sent = await Edit.objects.filter(once=intent.once).afirst() if intent.once else None
        if sent is None:
            raise
        raise AlreadySent(sent) from None
    return row
