"""Find rows of the audit trail."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from leases.domain.cause.clue import FORM_WRITER
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause, Incident
from leases.domain.lease import ObjectName
from leases.history.database import from_stored, from_stored_json, is_text, to_stored
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
        row.request.get("uid"): row
        for row in (rows.filter(request__verb="delete") if deleted else ())
    }
    for change in wanted:
        if change.change is ChangeType.DELETED:
            row = by_uid.get(change.uid)
        else:
            place = (change.cluster, change.namespace, change.name, change.resource_version)
            row = by_version.get(place)
        if row is not None and _made(row, change):
            found[change] = row
    return found


def _made(row: Edit, change: Change) -> bool:
    """Whether the write is that change: of one that was found later, only its last write is known,
    which may be another one.
    """
    if not change.inferred or change.change is ChangeType.DELETED:
        return True
    if change.change is ChangeType.CREATED:
        return row.action == "lease.create"
    wrote = {one["field"]: one["to"] for one in changes_of(row)}
    if change.change is ChangeType.RECONFIGURED:
        return any(name.removeprefix("spec.") in change.fields for name in wrote)
    field = "spec.holderIdentity"
    return field in wrote and (wrote[field] or None) == change.holder


NAMES = 500  # of one query


def deleted_here(deletions: Iterable[Change]) -> set[Change]:
    """Return those of these deletions of one cluster that a form of ours asked for.

    The row of a deletion may still be open when the watch tells of it.
    """
    wanted = list(deletions)
    asked: set[str] = set()
    for first in range(0, len(wanted), NAMES):
        some = wanted[first : first + NAMES]
        rows = Edit.objects.filter(
            cluster__in={change.cluster for change in some},
            name__in={change.name for change in some},
            outcome__in=("done", Edit.INTENDED),
            request__verb="delete",
        )
        asked.update(row.get("uid", "") for row in rows.values_list("request", flat=True))
    return {change for change in wanted if change.uid in asked}


_SHAPES: dict[str, type] = {
    "before": dict, "after": dict, "request": dict, "answer": dict, "changes": list,
}  # fmt: skip
_CHANGE = {"field", "from", "to"}


def readable(row: Edit) -> Edit:
    """The row; without the columns that cannot be drawn, if there are such, and saying so.

    One such row must not take away the pages and exports that list it.
    """
    names = [field.attname for field in Edit._meta.concrete_fields]  # noqa: SLF001
    bad = [name for name in names if not _is_readable(name, getattr(row, name))]
    if not bad:
        return row
    kept = {name: getattr(row, name) for name in names if name not in bad}
    said = f"Row {row.pk} is unreadable: {', '.join(bad)} cannot be shown."
    detail = kept.get("detail", "")
    return Edit(**kept | {"detail": f"{said} {detail}".strip()})


def _is_change(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _CHANGE


def _is_readable(name: str, value: Any) -> bool:
    if name in _SHAPES and not isinstance(value, _SHAPES[name]):
        return False
    if name == "changes" and not all(_is_change(one) for one in value):
        return False
    try:
        return is_text(msgspec.json.encode(value).decode())
    except (ValueError, TypeError, RecursionError):  # of them UnicodeEncodeError
        return False


BEFORE, AFTER = timedelta(seconds=30), timedelta(seconds=5)  # around the first change
JUST = timedelta(milliseconds=500)


def writes_behind(incidents: Sequence[Incident]) -> dict[str, Edit]:
    """Return the write that began each of these incidents of one cluster, by their ids.

    Lists have no changes of an incident: its first Lease and the moment find the row.
    """
    mine = [one for one in incidents if may_be_by_form(one)]
    if not mine:
        return {}
    began = [one.began for one in mine]
    rows = Edit.objects.filter(
        cluster__in={one.cluster for one in mine},
        name__in={key.name for one in mine for key in one.leases[:MAX_LEASES]},
        at__gte=min(began) - BEFORE,
        at__lte=max(began) + AFTER,
        outcome="done",
    )
    newest = list(rows.order_by("-at"))
    found = {}
    for one in mine:
        keys = set(one.leases[:MAX_LEASES])
        rows_near = [
            row
            for row in newest
            if one.began - BEFORE <= row.at <= one.began + AFTER
            and row.cluster == one.cluster
            and ObjectName(row.namespace, row.name) in keys
            and (one.writer is not None or row.action == "lease.delete")
        ]
        if rows_near:  # the last one before it began; clocks of replicas differ
            before = (row for row in rows_near if row.at <= one.began + JUST)
            found[one.id] = next(before, rows_near[-1])
    return found


def may_be_by_form(incident: Incident) -> bool:
    """Whether a form of ours may have begun it: a deletion leaves no field manager."""
    deletion = incident.writer is None and incident.cause in (Cause.BY_HAND, Cause.DELETED)
    return incident.writer == FORM_WRITER or deletion


MAX_LEASES = 20  # of one incident


def as_item(row: Edit) -> dict[str, Any]:
    """Return one row as JSON values: a name for each of FIELDS."""
    row = readable(row)
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
