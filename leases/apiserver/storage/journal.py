"""The durable copy: one SQLite file, one writer thread, one transaction and fsync a batch."""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

logger = logging.getLogger(__name__)

FILE_NAME = "lease_api.sqlite3"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    name TEXT PRIMARY KEY, role TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, created TEXT NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('revision', 0), ('tokens', 0);
"""
_UPSERT = "INSERT OR REPLACE INTO objects VALUES "
_UPSERT_ROW = "(?, ?, ?, ?, ?)"
# Parameters are bounded (32,766 in a usual SQLite), and each number of rows is prepared once.
_UPSERT_AT_ONCE = 100
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
# Keeps the revision of the last removal, which no row has.
_REVISION = "UPDATE meta SET value = ? WHERE key = 'revision'"


class JournalRow(msgspec.Struct, frozen=True, gc=False):
    """One stored object; without a body a removed one."""

    resource: str
    namespace: str
    name: str
    revision: int
    body: bytes | None


Done = Callable[[Exception | None], None]


def connect(path: Path) -> sqlite3.Connection:
    """The database, made readable for its owner only. Raises sqlite3.Error."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    database = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(_SCHEMA)
    return database


class Journal:
    """Commits batches in the order given; `done` is called in the writer thread afterwards."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: queue.SimpleQueue[tuple[list[JournalRow], Done] | None] = queue.SimpleQueue()
        self._database: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> tuple[int, list[JournalRow]]:
        """The last revision and every object. Blocks while it reads."""
        self._database = connect(self._path)
        (revision,) = self._database.execute(
            "SELECT value FROM meta WHERE key = 'revision'"
        ).fetchone()
        rows = [JournalRow(*found) for found in self._database.execute("SELECT * FROM objects")]
        revision = max([revision, *(row.revision for row in rows)])
        self._thread = threading.Thread(target=self._run, name="lease-api-journal", daemon=True)
        self._thread.start()
        return revision, rows

    def submit(self, rows: list[JournalRow], done: Done) -> None:
        """Queue rows for one transaction; `done` gets None once they are durable, or the error."""
        self._waiting.put((rows, done))

    def close(self) -> None:
        """Write the queued rows, then close. Blocks."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            rows, done = work
            error: Exception | None = None
            try:
                self._write(rows)
            except Exception as failed:
                error = failed  # `done` gets it; the next batch may succeed
            try:
                done(error)
            except Exception:
                logger.exception("The callback of a write failed")
        if self._database is not None:
            self._database.close()

    def _write(self, rows: list[JournalRow]) -> None:
        """One transaction, mostly one statement: after each the thread waits for the GIL."""
        database = self._database
        if database is None:
            return
        stored = [row for row in rows if row.body is not None]
        gone = [row for row in rows if row.body is None]
        if not gone and len(stored) <= _UPSERT_AT_ONCE:
            _upsert(database, stored)
            return
        database.execute("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(stored), _UPSERT_AT_ONCE):
                _upsert(database, stored[start : start + _UPSERT_AT_ONCE])
            for row in gone:
                database.execute(_DELETE, (row.resource, row.namespace, row.name))
            if gone:
                database.execute(_REVISION, (gone[-1].revision,))
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise


def _upsert(database: sqlite3.Connection, rows: list[JournalRow]) -> None:
    values = [
        value
        for row in rows
        for value in (row.resource, row.namespace, row.name, row.revision, row.body)
    ]
    database.execute(_UPSERT + ", ".join([_UPSERT_ROW] * len(rows)), values)
