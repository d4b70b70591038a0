"""What `doctor` finds in the settings, the machine and the database."""

import atexit
import errno
import http.client
import os
import re
import secrets
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import MutableMapping
from contextlib import closing
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.db import Error
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import ConnectionHandler
from django.http.request import split_domain_port, validate_host

from dashboard.config import PREFIX, VERSION, VERSION_HEADER, Config, ConfigError, check_names, load
from dashboard.parts.cluster_diagnosis import Finding, Level
from dashboard.serving import data_directory
from leases.apiserver.http.port import CannotStart
from leases.apiserver.serving import examine_data
from leases.private_files import is_open, looking


def worst(findings: list[Finding]) -> Level:
    levels = {finding.level for finding in findings}
    return next((level for level in reversed(Level) if level in levels), Level.OK)


CHECK = "settings"
DATA = "data directory"
KNOWN = [PREFIX + item.name.upper() for item in fields(Config)]

# Filled by manage.py, before Django reads the settings.
set_aside: list[Finding] = []


def set_bad_settings_aside(environ: MutableMapping[str, str]) -> list[Finding]:
    """Remove from the environment what no start accepts. Returns the problems."""
    data_directory.look_only = True
    findings = []
    for name in [name for name in environ if name.startswith(PREFIX)]:
        value = environ[name]
        try:
            load({name: value})
        except ConfigError as error:
            findings.append(_finding(name, str(error)))
            del environ[name]
    config = load(environ)
    try:
        data = data_directory.open_data_directory(config.data)
        if not config.secret_key:
            data_directory.secret_key(data)
    except data_directory.BadDataDirectory as error:
        findings.append(_problem(DATA, str(error)))
        instead = tempfile.mkdtemp(prefix="leaseboard-doctor-")
        atexit.register(shutil.rmtree, instead, ignore_errors=True)
        environ["LEASEBOARD_DATA"] = instead
    except data_directory.BadSecretKey as error:
        findings.append(_problem("secret key", str(error)))
        environ["LEASEBOARD_SECRET_KEY"] = secrets.token_urlsafe(50)
    return findings


def examine_settings(config: Config, names: list[str]) -> list[Finding]:
    """What was set aside; else how many settings are set."""
    findings = list(set_aside)
    if not any(finding.check == CHECK for finding in findings):
        listed = ", ".join(sorted(names)) or "none; the defaults hold"
        findings.insert(0, Finding(check=CHECK, level=Level.OK, found=f"Set: {listed}."))
    if config.https and config.allowed_hosts == Config().allowed_hosts:
        findings.append(
            Finding(
                check=CHECK,
                level=Level.WARNING,
                found="LEASEBOARD_HTTPS is true, but the pages answer to localhost only.",
                do="Name the host that browsers use in LEASEBOARD_ALLOWED_HOSTS.",
            )
        )
    host = split_domain_port(urlsplit(config.url).netloc)[0]
    if host and not validate_host(host, config.allowed_hosts):
        findings.append(
            Finding(
                check=CHECK,
                level=Level.PROBLEM,
                found=f"Links lead to {config.url}, but the pages do not answer to that host.",
                do=f"Add {host} to LEASEBOARD_ALLOWED_HOSTS.",
            )
        )
    try:
        if config.cluster_secrets is None:
            check_names(config, config.clusters)
    except ConfigError as error:
        findings.append(_problem(CHECK, str(error)))
    return findings


def _finding(name: str, said: str) -> Finding:
    if name in KNOWN:
        return _problem(CHECK, said)
    close = get_close_matches(name, KNOWN, n=1)
    return Finding(
        check=CHECK,
        level=Level.PROBLEM,
        found=f"{name} is not a setting.",
        do=f"Did you mean {close[0]}?" if close else "docs/operations.md lists all settings.",
    )


def _problem(check: str, said: str) -> Finding:
    found, _, do = said.partition(": ")
    do = f"{do[:1].upper()}{do[1:]}"
    return Finding(check=check, level=Level.PROBLEM, found=f"{found}.", do=do)


MIB = 2**20
LITTLE_DISK, TOO_LITTLE_DISK = 1024 * MIB, 64 * MIB
# 130,000 Leases take 342 MiB (docs/scale.md).
LITTLE_MEMORY, TOO_LITTLE_MEMORY = 512 * MIB, 128 * MIB
NO_LIMIT = 1 << 60  # bytes; cgroup v1 writes a number near 2**63 for "none"
ANSWER_SECONDS = 3.0

disk_usage = shutil.disk_usage  # a test puts a small disk here


def examine_disk(folder: Path) -> Finding:
    try:
        free = disk_usage(data_directory.nearest(folder)).free
    except OSError as error:
        return Finding(
            check="disk", level=Level.PROBLEM, found=f"{folder} cannot be read ({error.strerror}).",
            do="Check LEASEBOARD_DATA and its volume.",
        )  # fmt: skip
    level = _level(free, warn=LITTLE_DISK, fail=TOO_LITTLE_DISK)
    return Finding(
        check="disk",
        level=level,
        found=f"{free // MIB:,} MiB are free where {folder} is.",
        do="" if level is Level.OK else "Make room, or lower LEASEBOARD_RETENTION_ROWS or _DAYS.",
    )


def examine_memory(root: Path = Path("/")) -> Finding:
    limits = _memory_limits(root)
    if not limits:
        return Finding(check="memory", level=Level.OK, found="No limit is known on this system.")
    limit, source = min(limits)
    level = _level(limit, warn=LITTLE_MEMORY, fail=TOO_LITTLE_MEMORY)
    return Finding(
        check="memory",
        level=level,
        found=f"This process may use {limit // MIB:,} MiB ({source}).",
        do="" if level is Level.OK else "130,000 Leases need 342 MiB: raise the limit.",
    )


def examine_port(host: str, port: int, allowed_host: str) -> Finding:
    """Whether `serve` could listen there, or does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            return Finding(check="port", level=Level.OK, found=f"{host} port {port} is free.")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return Finding(
                    check="port", level=Level.PROBLEM,
                    found=f"Cannot listen on {host} port {port} ({error.strerror or error}).",
                    do="Choose others with --host and --port.",
                )  # fmt: skip
    return _user_of(host, port, allowed_host)


def _user_of(host: str, port: int, allowed_host: str) -> Finding:
    """Who uses the port: Leaseboard names its version in a header."""
    running = _running_version(host, port, allowed_host)
    where = f"{host} port {port}"
    if running is None:
        return Finding(
            check="port", level=Level.PROBLEM, found=f"Another program uses {where}.",
            do="Stop it, or choose another with --port.",
        )  # fmt: skip
    if running != VERSION:
        return Finding(
            check="port", level=Level.WARNING, do="Restart serve.",
            found=f"Leaseboard {running} serves {where}, but {VERSION} is installed.",
        )  # fmt: skip
    return Finding(check="port", level=Level.OK, found=f"Leaseboard {running} serves {where}.")


def _running_version(host: str, port: int, allowed_host: str) -> str | None:
    there = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound
    connection = http.client.HTTPConnection(there, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz", headers={"Host": allowed_host})
        return connection.getresponse().headers.get(VERSION_HEADER)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _level(there: int, *, warn: int, fail: int) -> Level:
    if there < fail:
        return Level.PROBLEM
    return Level.WARNING if there < warn else Level.OK


def _memory_limits(root: Path) -> list[tuple[int, str]]:
    """The limits in bytes with their sources: the cgroups of this process, the machine."""
    found = []
    groups = _text(root / "proc/self/cgroup")
    own = re.search(r"^0::/(.*)$", groups, re.MULTILINE)
    base = root / "sys/fs/cgroup"
    places = [base / "memory.max", base / "memory/memory.limit_in_bytes"]
    if own and ".." not in own[1]:
        below = base / own[1]
        places += [folder / "memory.max" for folder in (below, *below.parents)
                   if folder.is_relative_to(base)]  # fmt: skip
    for place in places:
        text = _text(place).strip()
        if text.isdecimal() and int(text) < NO_LIMIT:
            found.append((int(text), f"/{place.relative_to(root)}"))
    if total := re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE):
        found.append((int(total[1]) * 1024, "the machine's memory"))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


FILES = "files"


def examine_files(data: Path, static: Path, *, embedded: bool) -> list[Finding]:
    """The files of the data directory that `serve` reads or writes at its start."""
    from dashboard.access.links import BadLinkFile, kept_token

    findings = []
    try:
        kept_token(data)
    except BadLinkFile as error:
        findings.append(_problem(FILES, str(error)))
    if static.exists() and not static.is_dir():
        findings.append(
            Finding(
                check=FILES, level=Level.PROBLEM, found=f"{static} is no directory.",
                do="Remove it: static files are put there.",
            )
        )  # fmt: skip
    if embedded:
        try:
            examine_data(data)
        except CannotStart as error:
            findings.append(_problem(FILES, str(error)))
    if not findings:
        found = f"What is in {data} can be used."
        findings.append(Finding(check=FILES, level=Level.OK, found=found))
    return findings


DATABASE = "database"

LARGE_LOG = 256 * MIB
RESTORE = "Restore a backup (manage.py restore); without one, move the file away and begin anew."


class _Unusable(Exception):
    """Nothing more can be said of the database; holds the finding."""

    def __init__(self, found: str, do: str) -> None:
        super().__init__(found)
        self.finding = Finding(check=DATABASE, level=Level.PROBLEM, found=found, do=do)


def examine_database(config: Config, file: Path | None, *, seconds: float) -> list[Finding]:
    """`file` is an SQLite history, None a PostgreSQL one. No answer is waited for longer."""
    try:
        if file is None:
            return _examine_postgresql(config.database_url, seconds)
        if file.is_symlink() and not os.path.exists(file):  # noqa: PTH110 - `exists` may raise
            raise _Unusable(
                f"{file} is a link that leads nowhere.", "Make what it leads to, or remove it."
            )
        if not file.exists():
            found = f"There is no {file} yet; the first serve makes it."
            return [Finding(check=DATABASE, level=Level.OK, found=found)]
        return _examine_sqlite(file, seconds)
    except _Unusable as error:
        return [error.finding]


def _examine_sqlite(file: Path, seconds: float) -> list[Finding]:
    try:
        used = is_open(file)
        log = file.with_name(f"{file.name}-wal")
        waiting = log.stat().st_size if log.exists() else 0
        if waiting and not used and not file.with_name(f"{file.name}-shm").exists():
            found = f"{file} came here with its log, but without its index (-shm)."
            do = "Start serve: it makes the index."
            return [Finding(check=DATABASE, level=Level.WARNING, found=found, do=do)]
        with closing(
            sqlite3.connect(looking(file), uri=True, timeout=seconds, isolation_level=None)
        ) as database:
            checked = _check_whole(database, file, seconds)
            applied = _applied(database)
            findings = _migration_findings(applied)
            findings += _check_writable(database, file, used=used)
    except sqlite3.Error as error:
        raise _Unusable(f"{file} cannot be used ({error}).", RESTORE) from error
    size = (file.stat().st_size + waiting) / MIB
    found = f"SQLite {file}, {size:,.1f} MiB, {checked}."
    findings.insert(0, Finding(check=DATABASE, level=Level.OK, found=found))
    if waiting > LARGE_LOG:
        findings.append(
            Finding(
                check=DATABASE,
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


def _check_writable(database: sqlite3.Connection, file: Path, *, used: bool) -> list[Finding]:
    try:
        if not used:  # a connection that may write would write the log into the file at its end
            for path in (file, file.parent):
                if not os.access(path, os.W_OK):
                    raise sqlite3.OperationalError(f"{path} is read-only")
            return []
        database.execute("BEGIN IMMEDIATE")
        database.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return [
                Finding(
                    check=DATABASE, level=Level.WARNING, found=f"{file} was locked all the time.",
                    do="End what holds a write open, such as a shell of sqlite3.",
                )
            ]  # fmt: skip
        raise _Unusable(
            f"{file} cannot be written ({error}).", "Check its owner, its mode and its volume."
        ) from error
    return []


def _migration_findings(applied: list[tuple[str, str]]) -> list[Finding]:
    unknown = data_directory.unknown_migrations(applied)
    if unknown:
        return [
            Finding(
                check=DATABASE, level=Level.PROBLEM,
                found=f"It is of a newer version than {VERSION}, which lacks {unknown[-1]}.",
                do="Install the newer version again, or restore the backup from before it.",
            )
        ]  # fmt: skip
    if not applied:
        return [
            Finding(check=DATABASE, level=Level.OK, found="It is empty; serve makes its tables.")
        ]
    waiting = data_directory.known_migrations() - set(applied)
    if waiting:
        return [
            Finding(
                check=DATABASE, level=Level.WARNING, found=f"{len(waiting)} migrations wait.",
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
    return [Finding(check=DATABASE, level=Level.OK, found=found), *_migration_findings(applied)]
