"""An export that is still being sent is cut when the right to read ends."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dashboard.access import rights
from tests.support.processes import serving
from tests.support.programs import people
from tests.support.programs.open_sockets import FEED, House, closing_of

ROWS = 100_000
# So many that no buffer between the two holds them all.
FILL = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)
INSERT INTO leases_change
  (cluster, namespace, name, uid, kind, change, at, observed_at, holder, resource_version, missed,
   inferred, fields, identity)
SELECT 'embedded', 'default', 'lease-' || n, 'uid', 'election', 'created', '2026-11-20 03:12:40',
  '2026-11-20 03:12:40', 'holder', n, 0, 0, '', n FROM numbers
"""
END = b"0\r\n\r\n"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with serving(tmp_path / "data", "--no-demo") as server:
        server.wait_synced()
        made = people.make(server.data, {"olga": people.READER})
        with closing(sqlite3.connect(server.data / "leaseboard.sqlite3")) as database:
            database.execute(FILL, {"rows": ROWS})
            database.commit()
        yield House(server, made)


def ask(house: House, query: str) -> socket.socket:
    """An export of which only the beginning is read."""
    connection = socket.create_connection(("127.0.0.1", house.server.port), timeout=60)
    connection.sendall(
        f"GET /c/embedded/history/?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Cookie: sessionid={house.people['olga']['session']}\r\n\r\n".encode()
    )
    return connection


def read_all(connection: socket.socket) -> bytes:
    read = []
    while part := connection.recv(1 << 20):
        read.append(part)
        if part.endswith(END):
            break
    return b"".join(read)


@pytest.mark.parametrize("how", ["ndjson", "csv"])
async def test_an_export_ends_with_the_right_to_read(house, how):
    olga = house.people["olga"]
    with ask(house, f"format={how}&range=1h") as whole:
        assert read_all(whole).endswith(END), "with a right that stands it is complete"
    with ask(house, f"format={how}") as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        feed = await house.open((FEED, {}), olga)
        house.end("DELETE FROM django_session WHERE session_key = :session", olga)
        assert await closing_of(feed) == (4403, rights.SIGNED_OUT)
        assert not read_all(connection).endswith(END), "nobody takes the part for the whole"
    assert f"was cut while it was sent: {rights.SIGNED_OUT}" in house.server.text
    assert "Traceback" not in house.server.text
