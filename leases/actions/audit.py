"""The audit trail: a row with the intent before the call, closed with the outcome after it.

If the process dies in between, or the API does not answer, the row stays open:
`leases.actions.unanswered_writes` resolves it against the cluster.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError

from leases.domain.lease import Lease, ObjectName
from leases.history.database import to_stored, to_stored_json
from leases.models import Edit
from leases.wire.microtime import format_microtime
from leases.wire.status import ApiError

logger = logging.getLogger(__name__)

Document = Mapping[str, Any]
# The server sets these, or a request repeats them as a precondition.
_SET_BY_SERVER = frozenset(
    {
        "creationTimestamp", "deletionTimestamp", "generation", "managedFields", "name",
        "namespace", "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip
_NO_FIELDS = frozenset({"apiVersion", "kind", "status"})
_TIMES = frozenset({"spec.acquireTime", "spec.renewTime"})


class FieldChange(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """One field, such as `spec.holderIdentity` or `metadata.labels[app]`; None: it is absent."""

    field: str
    before: Any = None
    after: Any = None


def as_document(lease: Lease | Document | None) -> dict[str, Any]:
    """Return the fields of a Lease as the API spells them, without absent ones."""
    if lease is None:
        return {}
    if not isinstance(lease, Lease):
        return dict(lease)
    spec = {
        name: value for name, value in msgspec.to_builtins(lease.spec).items() if value is not None
    }
    meta = {"labels": lease.metadata.labels or {}, "annotations": lease.metadata.annotations or {}}
    return {"metadata": meta, "spec": spec}


def leaves(document: Document) -> dict[str, Any]:
    """Return every field that a client may set, by its name."""
    found: dict[str, Any] = {}
    for part, value in document.items():
        if part == "metadata" and isinstance(value, Mapping):
            for name, one in value.items():
                if name not in _SET_BY_SERVER:
                    _collect(f"metadata.{name}", one, found)
        elif part not in _NO_FIELDS:
            _collect(part, value, found)
    return found


def changed_fields(before: Document, body: Document, *, whole: bool) -> list[FieldChange]:
    """Compare a request with the object that it changes.

    `whole`: the body replaces the object, so an absent field is removed; else it is a merge patch,
    in which null removes a field.
    """
    old, new = leaves(before), leaves(body)
    names = dict.fromkeys(new)
    for name in old:
        if whole or _is_removed(name, new):
            names[name] = None
    changes = (FieldChange(name, old.get(name), new.get(name)) for name in names)
    return [one for one in changes if not same(one.field, one.before, one.after)]


def same(field: str, one: Any, other: Any) -> bool:
    """Whether two values of a field are equal; times are compared as moments."""
    if one == other or field not in _TIMES:
        return bool(one == other)
    try:
        return datetime.fromisoformat(str(one)) == datetime.fromisoformat(str(other))
    except (TypeError, ValueError):
        return False


def _collect(name: str, value: Any, found: dict[str, Any]) -> None:
    if not isinstance(value, Mapping):
        found[name] = value
        return
    for inner, one in value.items():
        deep = name.startswith("metadata.")
        _collect(f"{name}[{inner}]" if deep else f"{name}.{inner}", one, found)


def _is_removed(name: str, new: Mapping[str, Any]) -> bool:
    """Whether the patch removes the map that holds the field: `{"metadata": {"labels": null}}`."""
    holder = name.partition("[")[0]
    return holder != name and holder in new and new[holder] is None


DONE, REFUSED, FAILED = "done", "refused", "failed"
NOT_DONE, UNKNOWN = "not_done", "unknown"  # only of rows that were resolved later
_MAX_DETAIL = 1000
SERVER_ERROR = 500

# Rows whose request runs in this process: nobody else closes them.
running: set[int] = set()
unsaved: dict[int, Edit] = {}  # those of them that the database did not take, by their number


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to do what, and why."""

    user: User
    cluster: str
    key: ObjectName
    action: str  # namespaced: lease.edit
    reason: str
    at: datetime
    once: str = ""  # of the form that asked for it; "": it is not guarded against a resend
    address: str = ""  # of the client
    batch: str = ""  # one for all rows of a bulk action
    as_user: str = ""  # the user that the cluster was asked to take us for


class NothingWritten(Exception):
    """Base of what a body raises when it knows that the cluster wrote nothing."""


class AlreadySent(NothingWritten):
    """This drawing of the form was sent before; `row` is what became of it."""

    def __init__(self, row: Edit) -> None:
        super().__init__("This form was sent before. Nothing was written a second time.")
        self.row = row


def as_facts(before: Lease | dict[str, Any] | None) -> dict[str, Any]:
    facts = msgspec.to_builtins(before.spec) if isinstance(before, Lease) else before or {}
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
    intent: Intent,
    *,
    before: Lease | dict[str, Any] | None,
    wanted: dict[str, Any],
    clock: Callable[[], datetime],
) -> AsyncIterator[Edit]:
    """Write the open row, run the body, close the row. Records any error and raises it again.

    Raises AlreadySent, without running the body, if a row has the intent's `once`. The body calls
    `sending` before each attempt and `answered` after a success. A request without an answer leaves
    the row open: it may have been carried out.
    """
    row = await _open_row(intent, before=before, wanted=wanted)
    running.add(row.pk)
    try:
        yield row
    except ApiError as error:
        _note_error(row, error)
        raise
    except BaseException as error:  # cancelled, or a bug: record that too
        row.detail = to_stored(repr(error))
        if isinstance(error, NothingWritten) or not row.request:
            row.outcome = FAILED
        raise
    else:
        row.outcome = DONE
    finally:
        if row.outcome != Edit.INTENDED:
            row.closed_at = clock()
        await _close(row)


async def _close(row: Edit) -> None:
    """Save the row; if the database refuses, `save_unsaved` does so once it answers again.

    What the cluster did is done: a database that is locked meanwhile makes no failure of it.
    """
    unsaved[row.pk] = row  # also when the save is cancelled
    try:
        await row.asave()
    except DatabaseError as error:
        logger.warning(
            "The audit row %d is not closed yet, the database refuses: %s", row.pk, error
        )
    else:
        _is_closed(row)


async def save_unsaved() -> None:
    """Save the rows that the database refused. Raises DatabaseError if it still refuses."""
    for number, row in list(unsaved.items()):
        try:
            await row.asave()
        except IntegrityError:  # its row, or its user, is gone
            _is_closed(row)
            continue
        _is_closed(row)
        logger.info("The audit row %d is closed: %s", number, row.outcome)


def _is_closed(row: Edit) -> None:
    unsaved.pop(row.pk, None)
    running.discard(row.pk)


async def sent_before(once: str, *, user: User, cluster: str) -> Edit | None:
    """The row of the first sending of a form, if it was sent before."""
    if not once.isprintable():  # ours always is
        return None
    return await Edit.objects.filter(once=once or None, user=user, cluster=cluster).afirst()


async def sending(
    row: Edit,
    verb: str,
    body: Document,
    *,
    current: Lease | Document | None,
    at: datetime,
    since: str = "",
) -> None:
    """Store an attempt before it is sent: what it changes, and on what it is conditional.

    `current` is the Lease that was read for it; None for a create, which names a resourceVersion
    of the collection from before in `since`.
    """
    if isinstance(current, Lease):
        version, uid = current.resource_version, current.uid
    else:
        meta = (current or {}).get("metadata", {})
        version, uid = meta.get("resourceVersion", ""), meta.get("uid", "")
    earlier = row.changes, row.request
    if verb != "delete":
        changes = changed_fields(as_document(current), body, whole=verb in ("create", "update"))
        row.changes = to_stored_json(msgspec.to_builtins(changes))
    row.request = {
        "verb": verb,
        "resource_version": version or since,
        "uid": uid,
        "attempt": row.request.get("attempt", 0) + 1,
        "sent_at": format_microtime(at),
    }
    try:
        await row.asave(update_fields=["changes", "request"])
    except DatabaseError:
        row.changes, row.request = earlier  # it is not sent
        raise


def answered(row: Edit, lease: Lease | Document | None = None) -> None:
    """Note the API's answer to the last attempt; the row is saved when it is closed."""
    written = as_document(lease)
    version = lease.resource_version if isinstance(lease, Lease) else ""
    if not version:
        version = str(written.get("metadata", {}).get("resourceVersion", ""))
    row.resource_version = version
    row.answer = {"code": 201 if row.request.get("verb") == "create" else 200, "reason": ""}


def _note_error(row: Edit, error: ApiError) -> None:
    status = error.status
    row.detail = to_stored(str(error))
    # After a 5xx the write may have reached etcd: only the cluster knows.
    if 0 < status.code < SERVER_ERROR:
        row.outcome = REFUSED
    elif not row.request:
        row.outcome = FAILED
    row.answer = to_stored_json(
        {
            "code": status.code,
            "reason": status.reason,
            "message": status.message,
            "fields": [{"field": one.field, "message": one.message} for one in error.causes],
        }
    )


async def _open_row(
    intent: Intent, *, before: Lease | dict[str, Any] | None, wanted: dict[str, Any]
) -> Edit:
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
        address=intent.address,
        batch=intent.batch,
        as_user=intent.as_user,
    )
    try:
        await row.asave(force_insert=True)
    except IntegrityError:
        sent = await Edit.objects.filter(once=intent.once).afirst() if intent.once else None
        if sent is None:
            raise
        raise AlreadySent(sent) from None
    return row
