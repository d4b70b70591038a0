"""Read changes with hand-written SQL, on SQLite by a given index.

SQLite has no statistics about rare values, so its choice of an index is a guess. A statement that
names an index fails if the index cannot serve it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection

Row = tuple[Any, ...]


def select(sql: str, parameters: Sequence[object] = ()) -> list[Row]:
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


def _bound(value: object) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value
