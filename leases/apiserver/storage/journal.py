"""The durable copy: one SQLite file, one writer thread, one transaction and fsync a batch.

A transaction costs about as much as ten rows. A single writer is served at once. With several, a
transaction waits for as many writes as the last one had, up to GATHER seconds.
"""

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from leases.apiserver.codec.go_json import decode_stored, dumps
from leases.apiserver.errors import Failed
from leases.wire.microtime import format_time
from leases.wire.status import ApiError


class Version(msgspec.Struct, frozen=True, gc=False):
    """One version of one object. `body` is its JSON without kind and apiVersion, rv included."""

    namespace: str
    name: str
    uid: str
    revision: int
    labels: dict[str, str] | None
    body: bytes

    @property
    def key(self) -> str:
        """The key that lists are sorted by, as in etcd."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def read(self) -> dict[str, Any]:
        """A newly decoded object, which the caller may change."""
        found: dict[str, Any] = decode_stored(self.body)
        return found


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. For a deletion `current` is None and `last` the last state at its revision."""

    resource: str
    revision: int
    current: Version | None
    previous: Version | None
    last: Version | None = None


def now_text() -> str:
    """The present as metav1.Time."""
    return _second_text(int(time.time()))


@lru_cache(maxsize=2)
def _second_text(second: int) -> str:
    return format_time(datetime.fromtimestamp(second, UTC))


def with_revision(obj: dict[str, Any], revision: int) -> dict[str, Any]:
    """The object with this resourceVersion, in Go's order of fields."""
    metadata = obj["metadata"] | {"resourceVersion": str(revision)}
    if "resourceVersion" not in obj["metadata"]:
        metadata = ordered_metadata(metadata)
    return obj | {"metadata": metadata}


_METADATA_ORDER = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations",
    "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip


def ordered_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """ObjectMeta in the order in which Go writes it."""
    return {name: metadata[name] for name in _METADATA_ORDER if name in metadata}


def version_of(obj: dict[str, Any], revision: int, before: Version | None = None) -> Version:
    """The version that a canonical object (without kind and apiVersion) becomes at a revision.

    It shares with the one `before` it what a renewal does not change: thousands are kept.
    """
    stamped = with_revision(obj, revision)
    metadata = stamped["metadata"]
    uid, labels = metadata.get("uid", ""), metadata.get("labels")
    name, namespace = metadata["name"], metadata.get("namespace", "")
    if before is not None:
        name, namespace = before.name, before.namespace
        uid = before.uid if uid == before.uid else uid
        labels = before.labels if labels == before.labels else labels
    return Version(
        namespace=namespace,
        name=name,
        uid=uid,
        revision=revision,
        labels=labels,
        body=dumps(stamped),
    )


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


Written = Callable[[Exception | None], None]


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
        self._waiting: queue.SimpleQueue[tuple[list[JournalRow], Written] | None] = (
            queue.SimpleQueue()
        )
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

    def submit(self, rows: list[JournalRow], done: Written) -> None:
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


# Seconds that a transaction waits for more writes at most.
GATHER = 0.005

Key = tuple[str, str, str]  # resource, namespace, name
# Gets the stored version or the error, on the event loop.
Done = Callable[[Version | None, ApiError | None], None]


class Write(msgspec.Struct, frozen=True):
    """A change on its way to disk, and the callback for its result."""

    key: Key
    event: Event
    done: Done

    @property
    def row(self) -> JournalRow:
        version = self.event.current
        return JournalRow(*self.key, self.event.revision, None if version is None else version.body)


# Gets the writes in their order and the error that kept them from disk, on the event loop.
Settle = Callable[[list[Write], Exception | None], None]


class Commits:
    """Hands batches to the journal, one at a time."""

    def __init__(self, journal: Journal, settle: Settle, failed: Failed) -> None:
        self._journal = journal
        self._settle = settle
        self._failed = failed
        self._gathered: list[Write] = []
        self._due: asyncio.Handle | None = None
        self._committing = False
        self._expected = 1

    def add(self, write: Write) -> None:
        self._gathered.append(write)
        if not self._committing:
            self._schedule()

    def _schedule(self) -> None:
        if len(self._gathered) >= self._expected > 1:
            self._submit()
        elif self._due is None:
            loop = asyncio.get_running_loop()
            if self._expected > 1:
                self._due = loop.call_later(GATHER, self._submit)
            else:
                self._due = loop.call_soon(self._submit)

    def _submit(self) -> None:
        loop = asyncio.get_running_loop()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        batch, self._gathered = self._gathered, []
        self._committing = True

        def done(error: Exception | None) -> None:
            loop.call_soon_threadsafe(self._committed, batch, error)

        try:
            self._journal.submit([write.row for write in batch], done)
        except Exception as error:
            self._failed("commit", error)
            self._committed(batch, error)

    def _committed(self, batch: list[Write], error: Exception | None) -> None:
        # The writes of this batch and those since: that many clients write at a time.
        self._expected = len(batch) + len(self._gathered)
        self._committing = False
        if self._gathered:
            self._schedule()
        try:
            self._settle(batch, error)
        except Exception as failure:
            self._failed("commit", failure)

    def flush(self) -> None:
        """Commit the gathered writes without waiting for more."""
        if self._gathered:
            self._submit()
