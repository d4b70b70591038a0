"""Two whole processes watch one cluster and write one PostgreSQL: each change is kept once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, manage, wait_for
from tests.support.programs.lease_apis import lease_api
from tests.support.signing_in import rows, signed_in

MANY = 30


class Replicas:
    """Leaseboard twice, on one database, over one Lease API that is neither's own."""

    def __init__(self, home: Path, database: str, api: LeaseApi, url: str) -> None:
        self.api = api
        self._home = home
        self._environment = {
            "LEASEBOARD_DATABASE_URL": database,
            "LEASEBOARD_SECRET_KEY": "the same for all, and more than fifty characters long",
        }
        self._source = f"c=url:{url.replace('://', f'://{api.token}@')}"
        with ThreadPoolExecutor() as both:  # at once: each finds an empty database
            self.one, self.other = both.map(self.start, ("one", "other"))

    def start(self, name: str) -> Server:
        server = Server(self._home / name, "--cluster", self._source, **self._environment)
        server.wait_synced()
        return server

    def stored(self, name: str = "%") -> dict[str, list[tuple[str, str | None]]]:
        """Each Lease's changes in the order of history: what happened, and who holds it then."""
        stored: dict[str, list[tuple[str, str | None]]] = {}
        with psycopg.connect(self._environment["LEASEBOARD_DATABASE_URL"]) as connection:
            rows = connection.execute(
                "SELECT name, change, holder FROM leases_change WHERE name LIKE %s ORDER BY at, id",
                [name],
            )
            for lease, change, holder in rows:
                stored.setdefault(lease, []).append((change, holder))
        return stored

    def exported(self) -> int:
        """How many changes any replica's command exports."""
        done = manage(self._home / "one", "export_history", **self._environment)
        assert done.returncode == 0, done.stderr
        return len(done.stdout.splitlines())

    def wait_stored(self, name: str, *words: str) -> None:
        wait_for(
            lambda: (
                [word for word, _ in self.stored(name).get(name, [])][-len(words) :] == [*words]
            ),
            what=f"{name} to be {words}",
        )


@pytest.fixture
def replicas(tmp_path: Path, postgres) -> Iterator[Replicas]:
    with ExitStack() as stack:
        _, url = stack.enter_context(lease_api(tmp_path / "api"))
        api = LeaseApi(tmp_path / "api" / "kubeconfig")
        api.create("old", holder="a")
        both = Replicas(tmp_path, postgres.database(), api, url)
        stack.callback(stop, both)
        yield both


def stop(replicas: Replicas) -> None:
    both = (replicas.one, replicas.other)
    assert [server.interrupt() for server in both if server.process.poll() is None] == [0, 0]
    assert [server.text for server in both if "Traceback" in server.text] == []


def test_every_change_is_kept_once_whoever_dies_meanwhile(replicas: Replicas) -> None:
    api = replicas.api
    browser = signed_in(replicas.one)
    assert list(rows(browser, replicas.other, "c")) == ["default/old"]
    for number in range(MANY):  # each judged by two clocks
        api.create(f"short-{number}", holder="x", duration=1)
    api.take("old", holder="b", transitions=1)
    api.patch("old", holderIdentity="")
    replicas.wait_stored("short-0", "created", "expired")
    api.take("short-0", holder="y", transitions=1)
    api.take("short-1", holder="x", transitions=0)
    replicas.one.kill()
    api.take("old", holder="c", transitions=2)
    replicas.wait_stored("short-0", "taken_over", "expired")
    api.delete("short-0")
    replicas.one = replicas.start("one")
    api.take("old", holder="d", transitions=3)
    replicas.other.kill()
    api.take("old", holder="e", transitions=4)
    replicas.wait_stored("old", "replaced", "replaced")
    replicas.other = replicas.start("other")
    api.label("old", team="blue")
    replicas.wait_stored("old", "reconfigured")
    stored = replicas.stored()
    assert replicas.exported() == sum(map(len, stored.values()))
    assert stored.pop("old") == [
        ("created", "a"), ("replaced", "b"), ("released", None), ("acquired", "c"),
        ("replaced", "d"), ("replaced", "e"), ("reconfigured", "e"),
    ]  # fmt: skip
    assert stored.pop("short-0") == [
        ("created", "x"), ("expired", "x"), ("taken_over", "y"), ("expired", "y"),
        ("deleted", None),
    ]  # fmt: skip
    assert stored.pop("short-1") == [
        ("created", "x"), ("expired", "x"), ("restarted", "x"), ("expired", "x"),
    ]  # fmt: skip
    assert stored == {
        f"short-{number}": [("created", "x"), ("expired", "x")] for number in range(2, MANY)
    }
