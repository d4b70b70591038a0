"""Find rows of the audit trail."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from leases.domain.change import Change, ChangeType
from leases.domain.lease import ObjectName
from leases.history.database import from_stored, from_stored_json, to_stored
from leases.models import Edit
from leases.wire.microtime import format_microtime

FIELDS = (
    "id", "at", "closed_at", "user", "address", "cluster", "namespace", "name", "action",
    "changes", "reason", "outcome", "detail", "code", "code_reason", "resource_version",
    "required_version", "attempts", "as_user", "batch", "resolved_at",
)  # fmt: skip


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What all rows must have; empty: anything. `text` is part of a name, a reason or a detail."""

    cluster: str = ""
    lease: ObjectName | None = None
    user: str = ""
    action: str = ""
    outcome: str = ""
    batch: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


def matching(wanted: AuditFilter) -> QuerySet[Edit]:
    """Return the rows, newest first."""
    exact = {
        "cluster": wanted.cluster,
        "username": wanted.user,
        "action": wanted.action,
        "outcome": wanted.outcome,
        "batch": wanted.batch,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    if wanted.lease is not None:
        exact |= {"namespace": wanted.lease.namespace, "name": wanted.lease.name}
    rows = Edit.objects.filter(**{name: value for name, value in exact.items() if value})
    if wanted.text:
        stored = to_stored(wanted.text)
        columns = ("name", "namespace", "reason", "detail")
        found = Q()
        for column in columns:
            found |= Q(**{f"{column}__icontains": stored})
        rows = rows.filter(found)
    return rows.order_by("-at", "-id")


def writes_of(changes: Iterable[Change]) -> dict[Change, Edit]:
    """Return the rows that made these changes of one cluster.

    A write is known by the resourceVersion that it made, a deletion by the uid that it required.
    """
    found: dict[Change, Edit] = {}
    wanted = list(changes)
    rows = Edit.objects.filter(
        cluster__in={change.cluster for change in wanted},
        name__in={change.name for change in wanted},
        outcome="done",
    )
    versions = {change.resource_version for change in wanted} - {""}
    by_version = {
        (row.cluster, row.namespace, row.name, row.resource_version): row
        for row in rows.filter(resource_version__in=versions)
    }
    deleted = any(change.change is ChangeType.DELETED for change in wanted)
    by_uid = {
        row.request["uid"]: row for row in (rows.filter(request__verb="delete") if deleted else ())
    }
    for change in wanted:
        if change.change is ChangeType.DELETED:
            row = by_uid.get(change.uid)
        else:
            place = (change.cluster, change.namespace, change.name, change.resource_version)
            row = by_version.get(place)
        if row is not None:
            found[change] = row
    return found


def as_item(row: Edit) -> dict[str, Any]:
    """Return one row as JSON values: a name for each of FIELDS."""
    values = (
        row.pk,
        format_microtime(row.at),
        _moment(row.closed_at),
        row.username,
        row.address or None,
        row.cluster,
        row.namespace,
        row.name,
        row.action,
        changes_of(row),
        from_stored(row.reason),
        row.outcome,
        from_stored(row.detail),
        row.answer.get("code"),
        row.answer.get("reason"),
        row.resource_version or None,
        row.request.get("resource_version"),
        row.request.get("attempt", 0),
        row.as_user or None,
        row.batch or None,
        _moment(row.resolved_at),
    )
    return dict(zip(FIELDS, values, strict=True))


def changes_of(row: Edit) -> list[dict[str, Any]]:
    """Return the changed fields as `field`, `from`, `to`, also of rows of an earlier version."""
    if row.changes or row.request:
        return list(from_stored_json(row.changes))
    before, after = from_stored_json(row.before), from_stored_json(row.after)
    return [{"field": name, "from": before.get(name), "to": after[name]} for name in after]


def change_text(change: dict[str, Any]) -> str:
    """Such as `spec.holderIdentity: "a" -> "b"`, with values as JSON."""
    old, new = (msgspec.json.encode(change[side]).decode() for side in ("from", "to"))
    return f"{change['field']}: {old} -> {new}"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else format_microtime(moment)
