"""A PostgreSQL of one's own: Debian's programs, a directory thrown away, a free port of loopback.

PostgreSQL refuses to run as root, so root starts it as another user of the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.processes import ROOT, free_port

USER = "leaseboard"
# Nothing here outlives the test: what makes a crash safe only makes it slow.
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


class Postgres:
    """A running server; `database` makes a new empty database in it and gives its URL."""

    def __init__(self, port: int, control: Callable[..., None]) -> None:
        self.port = port
        self._control = control
        self._made = 0

    def start(self) -> None:
        self._control("start")

    def stop(self, mode: str = "immediate") -> None:
        """`fast` ends sessions and writes a checkpoint; `immediate` is like a crash."""
        self._control("stop", "-m", mode)

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        self._made += 1
        name = f"test_{self._made}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return self.url(name)


def programs() -> Path:
    """Where initdb and pg_ctl are; without them the test is skipped, but on CI it fails."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    inside = shutil.which("initdb")
    if found or inside:
        return (found[-1] if found else Path(str(inside))).parent
    sentence = "PostgreSQL is not installed: apt-get install postgresql"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


@contextmanager
def running(**more: str) -> Iterator[Postgres]:
    """A server for the length of the block; `more` overrides OPTIONS."""
    binaries, owner = programs(), _owner()
    home = Path(tempfile.mkdtemp(prefix="leaseboard-postgres-"))
    if owner:
        shutil.chown(home, **owner)
    try:
        data, port = home / "data", free_port()
        _run(binaries / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync", **owner)  # fmt: skip
        options = {**OPTIONS, **more}
        settings = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in options.items())

        def control(*what: str) -> None:
            _run(binaries / "pg_ctl", "-D", data, "-w", "-t", "60", "-l", home / "log",
                 "-o", f"-p {port} {settings}", *what, **owner)  # fmt: skip

        server = Postgres(port, control)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests that ask; each takes a `database()` of its own."""
    with running() as server:
        yield server


def passes_on(server: Postgres, *arguments: str) -> None:
    """Run pytest with these arguments once more, on a new database of this server."""
    done = subprocess.run(
        # The database is not dropped, for which every connection would have to be closed: it goes
        # with its server.
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses=0",
         "-m", "", "--reuse-db", *arguments],
        cwd=ROOT,
        env={**os.environ, "TEST_DATABASE_URL": server.database()},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _owner() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in known else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid}


def _run(program: Path, *arguments: str | Path, **owner: Any) -> None:
    # pg_ctl's server keeps what it inherits open: a pipe here would never end.
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            [str(program), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=said,
            stderr=said, check=False, timeout=120, cwd="/", **owner,
        )  # fmt: skip
        said.seek(0)
        assert done.returncode == 0, said.read().decode()
