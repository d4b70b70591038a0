"""An export that is still being sent is cut by whatever ends the right to read it."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from dashboard.lists import responses
from tests.support.processes import serving
from tests.support.programs import people
from tests.support.programs.ended_rights import TOKENS, USERS
from tests.support.programs.open_sockets import FEED, House, closing_of

ROWS = 50_000
UNREAD = 1 << 16  # bytes that the kernel may keep for who does not read them yet
# So many that no buffer between the two holds them all.
FILL = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)
INSERT INTO leases_change
  (cluster, namespace, name, uid, kind, change, at, observed_at, holder, resource_version, missed,
   inferred, fields, identity)
SELECT 'embedded', 'default', 'lease-' || n, 'uid', 'election', 'created', '2026-11-20 03:12:40',
  '2026-11-20 03:12:40', 'holder', n, 0, 0, '', n FROM numbers
"""
FILL_LOG = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)
INSERT INTO leases_securityrecord (at, event, who, address, about, outcome)
SELECT '2026-11-20 03:12:40', 'sign_in', 'ada', '', :about, 'ok' FROM numbers
"""
READ_LOG = """
INSERT INTO auth_user_user_permissions (user_id, permission_id)
SELECT :id, id FROM auth_permission WHERE codename = 'view_securityrecord'
"""
TAKE_LOG = """
DELETE FROM auth_user_user_permissions WHERE user_id = :id AND permission_id =
  (SELECT id FROM auth_permission WHERE codename = 'view_securityrecord')
"""
END = b"0\r\n\r\n"
WHOLE, AUDITOR, WALL = "whole", "auditor", "lobby"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    data: Path = tmp_path_factory.mktemp("exports") / "data"
    with serving(data, "--no-demo") as server:
        server.wait_synced()
        wanted = {name: kind for name, (kind, _, _) in USERS.items()}
        wanted |= dict.fromkeys((f"token {name}" for name in TOKENS), people.TOKEN)
        wanted |= {WHOLE: people.READER, AUDITOR: people.READER, WALL: people.wall("embedded")}
        made = people.make(data, wanted)
        with closing(sqlite3.connect(data / "leaseboard.sqlite3")) as database:
            database.execute(FILL, {"rows": ROWS})
            database.execute(FILL_LOG, {"rows": ROWS // 2, "about": "x" * 250})
            database.execute(READ_LOG, made[AUDITOR])
            database.commit()
        yield House(server, made)


def ask(house: House, who: dict[str, Any], path: str) -> socket.socket:
    """An export of which only the beginning is read."""
    right = f"Cookie: {who['cookie']}" if "cookie" in who else ""
    right = right or f"Authorization: Bearer {who['token']}"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", house.server.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{right}\r\n\r\n".encode())
    return connection


def read_all(connection: socket.socket) -> bytes:
    read = []
    while part := connection.recv(1 << 20):
        read.append(part)
        if part.endswith(END):
            break
    return b"".join(read)


async def test_an_export_ends_with_each_right_to_read_it(house):
    """By each reason at once; the feed of the same person tells when it has ended."""
    history = "/c/embedded/history/?format="
    with ask(house, house.people[WHOLE], f"{history}csv&range=1h") as whole:
        assert read_all(whole).endswith(END), "with a right that stands it is complete"
    reasons = {name: (sql, reason) for name, (_, sql, reason) in USERS.items()}
    reasons |= {f"token {name}": told for name, told in TOKENS.items()}
    async with AsyncExitStack() as feeds:
        with ExitStack() as exports:
            open_feeds, open_exports = {}, {}
            for number, name in enumerate(reasons):
                who, how = house.people[name], ("ndjson", "csv")[number % 2]
                open_exports[name] = exports.enter_context(ask(house, who, history + how))
                assert open_exports[name].recv(4096).startswith(b"HTTP/1.1 200")
                open_feeds[name] = await house.open((FEED, {}), who)
                await feeds.enter_async_context(open_feeds[name])
            for name, (sql, _) in reasons.items():
                house.end(sql, house.people[name])
            closed = await asyncio.gather(*map(closing_of, open_feeds.values()))
            assert closed == [(4403, reason) for _, reason in reasons.values()]
            for name, connection in open_exports.items():
                assert not read_all(connection).endswith(END), name
    for _, reason in reasons.values():
        assert f"was cut while it was sent: {reason}" in house.server.text
    assert "Traceback" not in house.server.text


def test_an_export_ends_with_the_role_that_allows_it(house):
    """Who may still read Leases keeps the sockets: the export asks by itself."""
    auditor = house.people[AUDITOR]
    with ask(house, auditor, "/security-log/?format=ndjson") as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        house.end(TAKE_LOG, auditor)
        assert not read_all(connection).endswith(END)
    assert f"was cut while it was sent: {responses.ROLE_TAKEN}" in house.server.text


def test_a_wall_link_opens_no_export(house):
    path = f"/c/embedded/history/?format=csv&key={house.people[WALL]['key']}"
    with socket.create_connection(("127.0.0.1", house.server.port), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert b" 401 " in connection.recv(4096).splitlines()[0]
