"""Leaseboard twice on one PostgreSQL, over one Lease API."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, manage, wait_for
from tests.support.programs.lease_apis import lease_api


class Replicas:
    """Leaseboard twice, on one database, over one Lease API that is neither's own."""

    def __init__(
        self, home: Path, database: str, api: LeaseApi, url: str, *more: str, **settings: str
    ) -> None:
        """`more` are further sources, as `--cluster` takes them."""
        self.api = api
        self._home = home
        self.environment = {
            "LEASEBOARD_DATABASE_URL": database,
            "LEASEBOARD_SECRET_KEY": "the same for all, and more than fifty characters long",
            **settings,
        }
        sources = (f"c=url:{url.replace('://', f'://{api.token}@')}", *more)
        self._clusters = tuple(word for source in sources for word in ("--cluster", source))
        with ThreadPoolExecutor() as both:  # at once: each finds an empty database
            self.one, self.other = both.map(self.start, ("one", "other"))

    def start(self, name: str) -> Server:
        server = Server(self._home / name, *self._clusters, **self.environment)
        server.wait_synced()
        return server

    def stored(self, name: str = "%") -> dict[str, list[tuple[str, str | None]]]:
        """Each Lease's changes in the order of history: what happened, and who holds it then."""
        stored: dict[str, list[tuple[str, str | None]]] = {}
        with psycopg.connect(self.environment["LEASEBOARD_DATABASE_URL"]) as connection:
            rows = connection.execute(
                "SELECT name, change, holder FROM leases_change WHERE name LIKE %s ORDER BY at, id",
                [name],
            )
            for lease, change, holder in rows:
                stored.setdefault(lease, []).append((change, holder))
        return stored

    def exported(self) -> int:
        """How many changes any replica's command exports."""
        done = manage(self._home / "one", "export_history", **self.environment)
        assert done.returncode == 0, done.stderr
        return len(done.stdout.splitlines())

    def wait_stored(self, name: str, *words: str) -> None:
        wait_for(
            lambda: (
                [word for word, _ in self.stored(name).get(name, [])][-len(words) :] == [*words]
            ),
            what=f"{name} to be {words}",
        )


@contextmanager
def two_replicas(home: Path, database: str, **settings: str) -> Iterator[Replicas]:
    """Both watch a Lease `old`; both must end with 0 and without a traceback."""
    with ExitStack() as stack:
        _, url = stack.enter_context(lease_api(home / "api"))
        api = LeaseApi(home / "api" / "kubeconfig")
        api.create("old", holder="a")
        both = Replicas(home, database, api, url, **settings)
        stack.callback(_stop, both)
        yield both


def _stop(replicas: Replicas) -> None:
    both = (replicas.one, replicas.other)
    assert [server.interrupt() for server in both if server.process.poll() is None] == [0, 0]
    assert [server.text for server in both if "Traceback" in server.text] == []
