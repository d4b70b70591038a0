"""The durable copy: one SQLite file, one writer thread, one fsync for all writes that wait (group
commit).
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

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
_UPSERT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_REVISION = "UPDATE meta SET value = ? WHERE key = 'revision'"


class Row(msgspec.Struct, frozen=True, gc=False):
    """One stored object, or with no body one that is gone."""

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
    """Writes rows in the order given; `done` is called in the writer thread after the commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: queue.SimpleQueue[tuple[list[Row], Done] | None] = queue.SimpleQueue()
        self._database: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> tuple[int, list[Row]]:
        """The last revision and every object. Blocks while it reads."""
        self._database = connect(self._path)
        (revision,) = self._database.execute(
            "SELECT value FROM meta WHERE key = 'revision'"
        ).fetchone()
        rows = [Row(*found) for found in self._database.execute("SELECT * FROM objects")]
        self._thread = threading.Thread(target=self._run, name="lease-api-journal", daemon=True)
        self._thread.start()
        return revision, rows

    def submit(self, rows: list[Row], done: Done) -> None:
        """Queue rows that belong together: durable when `done` is called without an error."""
        self._waiting.put((rows, done))

    def close(self) -> None:
        """Write what waits, then close. Blocks."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        going = True
        while going:
            batch = [self._waiting.get()]
            while True:
                try:
                    batch.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            work = [item for item in batch if item is not None]
            going = len(work) == len(batch)
            if work:
                self._commit(work)
        if self._database is not None:
            self._database.close()

    def _commit(self, work: list[tuple[list[Row], Done]]) -> None:
        error: Exception | None = None
        try:
            self._write([row for rows, _ in work for row in rows])
        except sqlite3.Error as failed:
            error = failed
        for _, done in work:
            done(error)

    def _write(self, rows: list[Row]) -> None:
        database = self._database
        if database is None or not rows:
            return
        database.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                key = (row.resource, row.namespace, row.name)
                if row.body is None:
                    database.execute(_DELETE, key)
                else:
                    database.execute(_UPSERT, (*key, row.revision, row.body))
            database.execute(_REVISION, (rows[-1].revision,))
            database.execute("COMMIT")
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
