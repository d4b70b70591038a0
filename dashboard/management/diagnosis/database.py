"""The database of history: does it answer, is it whole, writable, migrated, how large is it?"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import dj_database_url
from django.db import Error
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import ConnectionHandler

from dashboard.config import Config
from dashboard.configuration.version import VERSION
from dashboard.management.diagnosis.finding import Finding, Level
from dashboard.serving.newer_database import known_migrations, unknown_migrations

CHECK = "database"
MIB = 2**20
LARGE_LOG = 256 * MIB
RESTORE = "Restore a backup (manage.py restore); without one, move the file away and begin anew."


class _Unusable(Exception):
    """Nothing more can be said of the database; holds the finding."""

    def __init__(self, found: str, do: str) -> None:
        super().__init__(found)
        self.finding = Finding(check=CHECK, level=Level.PROBLEM, found=found, do=do)


def examine_database(config: Config, file: Path | None, *, seconds: float) -> list[Finding]:
    """`file` is an SQLite history, None a PostgreSQL one. No answer is waited for longer."""
    try:
        if file is None:
            return _examine_postgresql(config.database_url, seconds)
        if not file.exists():
            found = f"There is no {file} yet; the first serve makes it."
            return [Finding(check=CHECK, level=Level.OK, found=found)]
        return _examine_sqlite(file, seconds)
    except _Unusable as error:
        return [error.finding]


def _examine_sqlite(file: Path, seconds: float) -> list[Finding]:
    try:
        with closing(
            sqlite3.connect(
                f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=seconds,
                isolation_level=None,
            )
        ) as database:  # fmt: skip
            checked = _check_whole(database, file, seconds)
            applied = _applied(database)
            findings = _migration_findings(applied)
            mode = database.execute("PRAGMA journal_mode").fetchone()[0]
            findings += _check_writable(database, file)
    except sqlite3.Error as error:
        raise _Unusable(f"{file} cannot be used ({error}).", RESTORE) from error
    log = file.with_name(f"{file.name}-wal")
    waiting = log.stat().st_size if log.exists() else 0
    size = (file.stat().st_size + waiting) / MIB
    found = f"SQLite {file}, {size:,.1f} MiB, journal {mode}, {checked}."
    findings.insert(0, Finding(check=CHECK, level=Level.OK, found=found))
    if waiting > LARGE_LOG:
        findings.append(
            Finding(
                check=CHECK,
                level=Level.WARNING,
                found=f"{log} has grown to {waiting // MIB:,} MiB.",
                do="End what reads the database for hours; then it shrinks.",
            )
        )
    return findings


def _check_whole(database: sqlite3.Connection, file: Path, seconds: float) -> str:
    end = time.monotonic() + seconds
    database.set_progress_handler(lambda: time.monotonic() > end, 1_000)
    try:
        (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return f"not checked to its end within {seconds:g} s"
    finally:
        database.set_progress_handler(None, 0)
    if said != "ok":
        raise _Unusable(f"{file} is damaged ({said}).", RESTORE)
    return "whole"


def _applied(database: sqlite3.Connection) -> list[tuple[str, str]]:
    try:
        return database.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise


def _check_writable(database: sqlite3.Connection, file: Path) -> list[Finding]:
    try:
        database.execute("BEGIN IMMEDIATE")
        database.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return [
                Finding(
                    check=CHECK, level=Level.WARNING, found=f"{file} was locked all the time.",
                    do="End what holds a write open, such as a shell of sqlite3.",
                )
            ]  # fmt: skip
        raise _Unusable(
            f"{file} cannot be written ({error}).", "Check its owner, its mode and its volume."
        ) from error
    return []


def _migration_findings(applied: list[tuple[str, str]]) -> list[Finding]:
    unknown = unknown_migrations(applied)
    if unknown:
        return [
            Finding(
                check=CHECK, level=Level.PROBLEM,
                found=f"It is of a newer version than {VERSION}, which lacks {unknown[-1]}.",
                do="Install the newer version again, or restore the backup from before it.",
            )
        ]  # fmt: skip
    if not applied:
        return [Finding(check=CHECK, level=Level.OK, found="It is empty; serve makes its tables.")]
    waiting = known_migrations() - set(applied)
    if waiting:
        return [
            Finding(
                check=CHECK, level=Level.WARNING, found=f"{len(waiting)} migrations wait.",
                do="Make a backup, then start serve: it migrates.",
            )
        ]  # fmt: skip
    return []


def _examine_postgresql(url: str, seconds: float) -> list[Finding]:
    settings: dict[str, Any] = dict(dj_database_url.parse(url))
    settings["OPTIONS"] = {"connect_timeout": max(2, round(seconds)), **settings.get("OPTIONS", {})}
    connection = ConnectionHandler({"default": settings})["default"]
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version'), pg_database_size(current_database()),"
                " current_setting('transaction_read_only')"
            )
            version, size, read_only = cursor.fetchone()
        applied = list(MigrationRecorder(connection).applied_migrations())
    except Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise _Unusable(
            f"PostgreSQL cannot be used ({said.rstrip('.')}).",
            "Check LEASEBOARD_DATABASE_URL, and that the server runs and lets this machine in.",
        ) from error
    finally:
        connection.close()
    if read_only == "on":
        raise _Unusable(
            "PostgreSQL takes no writes: it is a standby, or set to read only.",
            "Name the primary in LEASEBOARD_DATABASE_URL.",
        )
    found = f"PostgreSQL {version}, {size / MIB:,.1f} MiB."
    return [Finding(check=CHECK, level=Level.OK, found=found), *_migration_findings(applied)]
