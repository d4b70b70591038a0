"""Read changes with hand-written SQL: as tuples, and on SQLite by a given index.

SQLite has no statistics about rare values, so its choice of an index is a guess. A statement that
names an index fails if the index cannot serve it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.history.database_text import from_stored

FIELDS = (
    "id", "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "renewed_at", "fields",
)  # fmt: skip
COLUMNS = ", ".join(FIELDS)
AT = FIELDS.index("at")
Row = tuple[Any, ...]


def select(sql: str, parameters: Sequence[object] = ()) -> list[Row]:
    """Return the rows of one statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, [_bound(value) for value in parameters])
        rows: list[Row] = cursor.fetchall()
        return rows


def by_index(name: str) -> str:
    """Return the table of changes, to be read by this index."""
    hint = f" INDEXED BY {name}" if connection.vendor == "sqlite" else ""
    return f"leases_change{hint}"


def moment(value: str | datetime) -> datetime:
    """Convert a time from a raw statement: SQLite returns UTC without an offset."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def to_change(row: Row) -> Change:
    """Convert a row of COLUMNS."""
    (
        _, cluster, namespace, name, uid, kind, change, at, observed_at, holder, previous_holder,
        resource_version, transitions, missed, inferred, inferred_since, gap_seconds, renewed_at,
        fields,
    ) = row  # fmt: skip
    return Change(
        cluster=cluster,
        namespace=namespace,
        name=name,
        uid=uid,
        kind=_KINDS[kind],
        change=_CHANGES[change],
        at=moment(at),
        observed_at=moment(observed_at),
        holder=from_stored(holder),
        previous_holder=from_stored(previous_holder),
        resource_version=resource_version,
        transitions=transitions,
        missed=missed,
        inferred=bool(inferred),
        inferred_since=None if inferred_since is None else moment(inferred_since),
        gap_seconds=gap_seconds,
        renewed_at=None if renewed_at is None else moment(renewed_at),
        fields=tuple(fields.split()) if fields else (),
    )


def _bound(value: object) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


_KINDS = {kind.value: kind for kind in Kind}
_CHANGES = {change.value: change for change in ChangeType}
