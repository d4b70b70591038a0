"""Writes on one connection: in pieces, many at once, cut short, and while the server stops."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from leases.apiserver.serving import LeaseApiServer
from leases.apiserver.storage.journal import Commits, Write
from tests.apiserver.clients import LEASES, lease
from tests.apiserver.codec.wire import Heard, message
from tests.apiserver.http.lowering import lower
from tests.apiserver.watch.streams import call

HELD = f"{LEASES}/held"
READ = message("GET", HELD)
CLOSE = b"Connection: close\r\n"
LIMIT = 15


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once a write is on its way to disk."""
    seen = asyncio.Event()
    add = Commits.add

    def noted(self: Commits, write: Write) -> None:
        add(self, write)
        seen.set()

    monkeypatch.setattr(Commits, "add", noted)
    return seen


@pytest.fixture
async def held(api: LeaseApiServer) -> dict[str, Any]:
    """A Lease as its holder read it."""
    return await call(api.url, "POST", LEASES, lease("held", leaseTransitions=1))


def renewal(held: dict[str, Any], transitions: int, more: bytes = b"") -> bytes:
    found = held | {"spec": {"leaseTransitions": transitions}}
    return message("PUT", HELD, json.dumps(found).encode(), more=more)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(0)

    async def hear(self) -> Heard:
        async with asyncio.timeout(LIMIT):
            head = await self._reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", head)
            assert size is not None
            return Heard(head + await self._reader.readexactly(int(size[1])))

    async def is_closed(self) -> bool:
        async with asyncio.timeout(LIMIT):
            return await self._reader.read() == b""


@asynccontextmanager
async def connect(api: LeaseApiServer) -> AsyncIterator[Connection]:
    where = urlsplit(api.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    yield Connection(reader, writer)
    writer.close()
    await writer.wait_closed()


def transitions(heard: Heard) -> int:
    found: int = json.loads(heard.body)["spec"]["leaseTransitions"]
    return found


async def test_it_may_come_in_pieces(api: LeaseApiServer, held: dict[str, Any]) -> None:
    whole = renewal(held, 2)
    async with connect(api) as connection:
        await connection.send(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
        assert transitions(await connection.hear()) == 2


async def test_requests_sent_at_once_are_answered_in_their_order(
    api: LeaseApiServer, held: dict[str, Any]
) -> None:
    other = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    async with connect(api) as connection:
        await connection.send(
            renewal(held, 2) + message("GET", HELD, more=other) + READ + renewal(held, 3)
        )
        heard = [await connection.hear() for _ in range(4)]
        assert [one.code for one in heard] == [200, 200, 200, 409]
        assert [transitions(one) for one in heard[:3]] == [2, 2, 2]
        await connection.send(renewal(json.loads(heard[0].body), 4) + READ)
        assert [transitions(await connection.hear()) for _ in range(2)] == [4, 4]


async def test_one_of_two_writes_at_once_conflicts(
    api: LeaseApiServer, held: dict[str, Any]
) -> None:
    async with connect(api) as one, connect(api) as other:
        await asyncio.gather(one.send(renewal(held, 2)), other.send(renewal(held, 3)))
        codes = [(await each.hear()).code for each in (one, other)]
    assert sorted(codes) == [200, 409]


@pytest.mark.parametrize("more", [{}, {"kind": "Least"}])
async def test_connection_close_is_honoured(
    more: dict[str, str], api: LeaseApiServer, held: dict[str, Any]
) -> None:
    async with connect(api) as connection:
        await connection.send(renewal(held | more, 2, CLOSE))
        assert "\r\nconnection: close" in (await connection.hear()).head
        assert await connection.is_closed()


async def test_a_clients_audit_id_comes_back(api: LeaseApiServer, held: dict[str, Any]) -> None:
    async with connect(api) as connection:
        await connection.send(renewal(held, 2, b"Audit-Id: mine\r\n"))
        assert "\r\naudit-id: mine" in (await connection.hear()).head


async def test_a_body_that_does_not_end_is_504(api: LeaseApiServer, held: dict[str, Any]) -> None:
    lower(api, body_seconds=0.2)
    whole = renewal(held, 2)
    for part in (whole.partition(b"{")[0], whole[:-1]):
        async with connect(api) as connection:
            await connection.send(part)
            heard = await connection.hear()
            assert heard.status["reason"] == "Timeout"
            assert await connection.is_closed()


@asynccontextmanager
async def begun_renewal(
    api: LeaseApiServer, held: dict[str, Any], begun: asyncio.Event
) -> AsyncIterator[Connection]:
    """A client whose renewal is on its way to disk."""
    async with connect(api) as connection:
        await connection.send(renewal(held, 2))
        async with asyncio.timeout(LIMIT):
            await begun.wait()
        yield connection


async def test_a_client_that_does_not_wait_has_renewed(
    api: LeaseApiServer, held: dict[str, Any], begun: asyncio.Event
) -> None:
    async with begun_renewal(api, held, begun):
        pass
    found = await call(api.url, "PUT", HELD, held)
    assert found["code"] == 409
    assert (await call(api.url, "GET", HELD))["spec"] == {"leaseTransitions": 2}


async def test_a_server_that_stops_answers_first(
    api: LeaseApiServer, held: dict[str, Any], begun: asyncio.Event
) -> None:
    async with begun_renewal(api, held, begun) as connection:
        async with asyncio.timeout(LIMIT):
            await api.stop()
        heard = await connection.hear()
        assert transitions(heard) == 2
        assert await connection.is_closed()
