"""The data directory: its modes, its keys, its lock, and the database in it.

Settings call this, so it holds for every command that reads them.

Commands connect by themselves: they need one connection, and a pool would hide why there is none.
"""

import os
import secrets
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils.crypto import salted_hmac

from dashboard.config import MIN_SECRET_KEY, VERSION
from leases.private_files import ProcessLock, write_private


class BadDataDirectory(Exception):
    """The directory cannot be made or written; the text says what to do."""


look_only = False  # `doctor` makes and changes nothing


def open_data_directory(data: Path) -> Path:
    """Make it where it is missing, for its owner alone, and see that files can be made in it."""
    try:
        if not look_only:
            data.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=nearest(data)):  # without a name, where the system can
            pass
    except OSError as error:
        reason = "it is a file" if data.is_file() else (error.strerror or str(error)).lower()
        raise BadDataDirectory(
            f"LEASEBOARD_DATA cannot be {str(data)[:200]!r} ({reason}): "
            "name a directory that can be written, or one that can be made."
        ) from error
    return data


def nearest(path: Path) -> Path:
    """The path, or the folder in which it would be made. Raises OSError."""
    while not path.is_dir():
        try:
            path.lstat()
        except FileNotFoundError:
            path = path.parent
        else:
            break
    return path


def history_lock(database: Path, *, refusal: str) -> ProcessLock:
    path = Path(os.path.realpath(database))  # `resolve` raises for links in a circle
    return ProcessLock(path.with_name(f"{path.name}.lock"), refusal=refusal)


FILE_NAME = "secret_key"


class BadSecretKey(Exception):
    """The kept key cannot be used; the text says what to do and does not contain the key."""


def secret_key(data: Path) -> str:
    """The kept key; made on first need, readable by its owner alone. Raises BadSecretKey."""
    path = data / FILE_NAME
    try:
        if not path.exists():
            if look_only:
                return secrets.token_urlsafe(50)
            write_private(path, secrets.token_urlsafe(50).encode(), replace=False)
        key = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _refusal(path, f"cannot be read ({str(reason).lower()})") from error
    if len(key) < MIN_SECRET_KEY:
        raise _refusal(path, f"holds fewer than {MIN_SECRET_KEY} characters")
    return key


def _refusal(path: Path, why: str) -> BadSecretKey:
    return BadSecretKey(
        f"The secret key {path} {why}: put a good copy in its place, or remove it; then a new one "
        "is made, and everybody signs in again."
    )


def mark_of(key: str) -> str:
    """Eight digits for the names of cookies, which browsers share among all ports of a host. They
    are the same for replicas, and after a restart.
    """
    return salted_hmac("leaseboard.cookies", "name", secret=key, algorithm="sha256").hexdigest()[:8]


UMASK = 0o077  # what this process makes is for its owner alone
OTHERS = 0o077  # the bits of a mode that let others in


def keep_private(data: Path, database: Path | None) -> None:
    """Let this process make private files, and take from others what an earlier one left open.

    `database` is an SQLite file that may lie elsewhere. What belongs to another user, as a
    mounted volume may, is left as it is.
    """
    os.umask(UMASK)
    if look_only:
        return
    with suppress(OSError):  # a path that cannot be used stops the start elsewhere, in a sentence
        if not data.stat().st_mode & stat.S_ISVTX:  # /tmp belongs to everybody
            for path in (data, *data.iterdir(), *(data / "static").rglob("*")):
                _close(path)
    if database is not None:
        for tail in ("", "-wal", "-shm", "-journal"):
            _close(database.with_name(database.name + tail))


def _close(path: Path) -> None:
    with suppress(OSError):  # gone meanwhile, somebody else's, or on a read-only disk
        mode = path.lstat().st_mode
        if mode & OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)


class NewerDatabase(Exception):
    """The database is of a newer version than this code; the text says what to do."""


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """App and name of each migration of this code, and of those that it replaces."""
    there = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return frozenset(there).union(*(migration.replaces for migration in there.values()))


def unknown_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Those of the applied migrations (app, name) of our apps that this code does not have."""
    known = known_migrations()
    apps = {app for app, _ in known}
    return [f"{app}.{name}" for app, name in applied if app in apps and (app, name) not in known]


def check_not_newer(database: BaseDatabaseWrapper | None = None) -> None:
    """Raises NewerDatabase; and Django's Error if the database does not answer."""
    database = database or connection
    unknown = unknown_migrations(MigrationRecorder(database).applied_migrations())
    if unknown:
        which = "The database"
        if database.vendor == "sqlite":
            which = f"The database {database.settings_dict['NAME']}"
        raise NewerDatabase(
            f"{which} is of a newer version than this Leaseboard {VERSION}, which does not know "
            f"its migration {unknown[-1]}: install the newer version again, or restore the backup "
            "from before the upgrade."
        )


def refuse_newer(**_signal: Any) -> None:
    """Receiver of pre_migrate: `serve` and `migrate` leave a newer database alone."""
    check_not_newer()


# More than all threads together: those of `thread_choice`, of history and of the sockets.
MAX_CONNECTIONS = 30
POOL: dict[str, Any] = {
    "min_size": 1,
    "max_size": MAX_CONNECTIONS,
    "timeout": 5.0,  # seconds that a page waits for a connection
    "max_idle": 60.0,  # seconds after which one that nobody uses is closed
    "max_waiting": 200,
    # An attempt to connect pauses twice as long each time, so begin anew soon: else a database that
    # comes back is noticed late.
    "reconnect_timeout": 1.0,
}


def bound_connections() -> None:
    """From now on each thread borrows its connection and gives it back."""
    settings = connections.settings[DEFAULT_DB_ALIAS]
    if settings["ENGINE"] != "django.db.backends.postgresql":
        return
    connections.close_all()
    settings.setdefault("OPTIONS", {})["pool"] = POOL
    settings["CONN_HEALTH_CHECKS"] = True  # or those from before a restart of PostgreSQL would fail


def close_connections() -> None:
    """The pool has threads of its own, which end here."""
    connections.close_all()
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]
        connection.settings_dict["OPTIONS"].pop("pool", None)
