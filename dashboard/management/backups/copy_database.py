"""Copy an SQLite database that is in use, as of one moment, with SQLite's online backup."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

WAIT_SECONDS = 20.0


class Damaged(Exception):
    """SQLite finds the database damaged; the text is SQLite's."""


def copy_database(source: Path, target: Path) -> None:
    """Make `target` a file of its own, without a write-ahead log.

    Raises sqlite3.Error, and Damaged. Copies in one step: SQLite starts a copy in several steps
    anew after each write. In WAL mode the writers go on meanwhile.
    """
    with (
        closing(_open(source)) as there,
        closing(sqlite3.connect(target)) as copy,
    ):
        there.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        (said,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise Damaged(str(said))


def fold_log(path: Path) -> None:
    """Bring what waits in the write-ahead log into the file. Raises sqlite3.Error."""
    with closing(_open(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode = DELETE")


def applied_migrations(path: Path) -> list[str]:
    with closing(_open(path)) as database:
        rows = database.execute("SELECT app, name FROM django_migrations ORDER BY id")
        return [f"{app}.{name}" for app, name in rows]


def row_counts(path: Path) -> dict[str, int]:
    """The number of rows of each table."""
    with closing(_open(path)) as database:
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " ORDER BY name"
        ).fetchall()
        return {
            name: database.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0]  # noqa: S608
            for (name,) in names
        }


def _open(path: Path) -> sqlite3.Connection:
    """Never makes the file."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=WAIT_SECONDS)
