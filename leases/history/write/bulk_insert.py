"""Write many rows: with few statements, or one statement for each.

SQLite releases Python's GIL for each statement: one per row would make the event loop and the
writer switch at every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

ROWS = 50  # per statement; SQLite takes 32,766 values, older ones 999


def execute_many(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement for each row."""
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def insert(head: str, rows: Sequence[Sequence[Any]], tail: str) -> None:
    """Run `head` VALUES rows `tail`. No two rows may conflict with each other."""
    with connection.cursor() as cursor:
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            row = f"({', '.join(['%s'] * len(some[0]))})"
            values = ", ".join([row] * len(some))
            cursor.execute(f"{head} VALUES {values} {tail}", [v for row in some for v in row])
