"""While PostgreSQL is down, what this process knows is shown; what needs history says so."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.support.open_page import session_of
from tests.support.postgres import Postgres
from tests.support.processes import Server, get, serving, wait_for

ROUNDS = 5
FROM_MEMORY = ("", "leases/", "leases/?format=json", "wall/")
NEEDS_HISTORY = ("history/", "incidents/", "timeline/", "reliability/", "history/?format=csv")
NEEDS_MORE = ("/wall-links/", "/people/", "/admin/", "/tokens/")  # than the right to read
SAID = "History is not reachable"


@pytest.fixture
def server(tmp_path: Path, postgres: Postgres) -> Iterator[Server]:
    database = postgres.database()
    with serving(tmp_path / "data", LEASEBOARD_DATABASE_URL=database) as one:
        one.wait_synced()
        yield one


class Visitor:
    def __init__(self, server: Server, session: str = "") -> None:
        self._server = server
        self._headers = {"Cookie": session} if session else {}
        self.base = f"{server.url}/c/embedded/"

    def get(self, url: str) -> tuple[int, str]:
        request = urllib.request.Request(url, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    @contextmanager
    def socket(self, query: str = "") -> Iterator[ClientConnection]:
        url = f"ws://127.0.0.1:{self._server.port}/c/embedded/live/page/{query}"
        with connect(url, additional_headers=self._headers, compression=None) as socket:
            socket.send('{"show": {}}')
            yield socket


def test_pages_and_sockets_answer_from_memory(server: Server, postgres: Postgres) -> None:
    wall = server.printed("Wall")
    stranger, person = Visitor(server), Visitor(server, session_of(server))
    addresses = [person.base + path for path in FROM_MEMORY]
    assert [person.get(url)[0] for url in addresses] == [200] * len(addresses)
    assert stranger.get(wall)[0] == 200
    key = "?" + wall.partition("?")[2]
    with person.socket() as kept, ThreadPoolExecutor(len(addresses) + 1) as threads:
        assert '"shown":true' in kept.recv(timeout=60)
        postgres.stop()
        try:
            for _ in range(ROUNDS):  # the first one at once, while nobody knows of it yet
                pages = [*threads.map(person.get, addresses), stranger.get(wall)]
                assert [status for status, _ in pages] == [200] * len(pages)
            for (_, text), url in zip(pages, [*addresses, wall], strict=True):
                assert "format=json" in url or SAID in text, url
            with person.socket() as fresh, stranger.socket(key) as of_wall:
                for socket in (fresh, of_wall, kept):
                    frame = wait_for(lambda s=socket: _with_problem(s), what="a frame")
                    assert SAID in frame
            for path in NEEDS_HISTORY:
                status, text = person.get(person.base + path)
                assert (status, text.count("<h1")) == (503, 1), path
                assert SAID in text
            for path in NEEDS_MORE:
                status, text = person.get(server.url + path)
                assert (status, SAID in text) == (503, True), path
            status, text = person.get(f"{server.url}/people/?format=json")
            assert (status, "does not answer" in text) == (503, True)
            assert stranger.get(f"{server.url}/c/embedded/wall/?key=unknown")[0] == 503
            status, text = get(f"{server.url}/readyz")
            assert (status, text.partition("\n")[0]) == (200, "ok")
            assert "history is not reachable" in text
        finally:
            postgres.start()
        wait_for(
            lambda: person.get(person.base + "history/")[0] == 200, what="history to come back"
        )
        wait_for(lambda: SAID not in person.get(person.base)[1], what="the notice to go")
    assert "Traceback" not in server.text


def _with_problem(socket: ClientConnection) -> str:
    text = str(socket.recv(timeout=60))
    return text if "reachable" in text else ""
