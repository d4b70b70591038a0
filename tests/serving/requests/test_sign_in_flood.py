"""A flood of guesses: pages and health go on, and what it opened is closed afterwards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from dashboard.serving.data_directory import MAX_CONNECTIONS
from tests.benchmarks.parts.attacks import Target, attack
from tests.support.postgres import Postgres
from tests.support.processes import Server, get, serving, wait_for

SECONDS = 60.0


def database_files(server: Server) -> int:
    """Descriptors that the process has of its database."""
    found = 0
    for name in os.listdir(f"/proc/{server.process.pid}/fd"):  # noqa: PTH208
        try:
            target = str(Path(f"/proc/{server.process.pid}/fd/{name}").readlink())
        except OSError:
            continue
        found += "leaseboard.sqlite3" in target
    return found


async def under_flood(server: Server, look: Callable[[], None]) -> Target:
    """Look again and again while strangers guess, until they are refused for a while."""
    target = Target(server.port)
    flood = asyncio.create_task(attack("sign-ins", target, SECONDS))
    looked = 0
    while not flood.done() and not (target.seen["429"] > 20 and looked > 5):
        await asyncio.to_thread(look)
        looked += 1
        await asyncio.sleep(0.1)
    assert not flood.done(), target.seen
    flood.cancel()
    await asyncio.gather(flood, return_exceptions=True)
    return target


def pages_answer(server: Server) -> None:
    for path in ("/healthz", "/readyz", "/sign-in/"):
        assert get(f"{server.url}{path}")[0] == 200, path


def test_a_flood_of_guesses_tires_nobody_on_sqlite(tmp_path):
    with serving(tmp_path / "data", "--no-demo") as server:
        server.wait_synced()
        pages_answer(server)
        before = database_files(server)
        seen = asyncio.run(under_flood(server, lambda: pages_answer(server))).seen
        # Five are checked, a few may be on their way; the others have to wait.
        assert 0 < seen["200"] <= 5  # the page with the form is one
        wait_for(lambda: database_files(server) <= before + 6, what="the files to be closed")
        said = [line for line in server.text.splitlines() if "Sign-in" in line]
        assert len([line for line in said if "failed" in line]) == 5
        assert len(said) == 6
        assert "wrong-guess" not in server.text


def sessions(postgres: Postgres, database: str) -> int:
    """How many connections to this database were ever made."""
    with psycopg.connect(postgres.url("postgres")) as connection:
        name = database.rpartition("/")[2]
        made = connection.execute(
            "SELECT sessions FROM pg_stat_database WHERE datname = %s", [name]
        ).fetchone()
    assert made is not None
    count: int = made[0]
    return count


@pytest.mark.long
def test_a_flood_of_guesses_leaves_postgresql_its_connections(tmp_path, postgres: Postgres):
    database = postgres.database()
    most = 0

    def look() -> None:
        nonlocal most
        pages_answer(server)
        with psycopg.connect(postgres.url("postgres")) as connection:
            name = database.rpartition("/")[2]
            counted = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]
            ).fetchone()
        assert counted is not None
        most = max(most, counted[0])

    url = {"LEASEBOARD_DATABASE_URL": database}
    with serving(tmp_path / "data", "--no-demo", **url) as server:
        server.wait_synced()
        asyncio.run(under_flood(server, look))
        assert 0 < most <= MAX_CONNECTIONS
        assert sessions(postgres, database) <= MAX_CONNECTIONS  # a request does not open its own
        assert server.interrupt() == 0
    assert "Traceback" not in server.text
    assert "couldn't stop thread" not in server.text
