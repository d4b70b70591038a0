"""Clients that do not finish their request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES, make_tokens
from tests.apiserver.codec.wire import connect, exchange, hear, message
from tests.apiserver.http.lowering import lower


@pytest.fixture
async def own_api(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    """A server in this event loop, whose limits a test can lower."""
    make_tokens(tmp_path)
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    yield server
    await server.stop()


async def test_a_head_that_does_not_end_is_hung_up_on(own_api: LeaseApiServer) -> None:
    lower(own_api, head_seconds=0.2)
    for part in (b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX: "):
        heard = await asyncio.to_thread(exchange, own_api.url, part)
        assert heard.code == 0


async def test_a_body_that_does_not_end_is_504(own_api: LeaseApiServer) -> None:
    lower(own_api, body_seconds=0.2)
    whole = message("POST", LEASES, b'{"metadata":{"name":"slow"}}')
    for part in (whole[:-28], whole[:-1]):
        heard = await asyncio.to_thread(exchange, own_api.url, part)
        assert heard.code == 504
        assert heard.status["reason"] == "Timeout"
        assert "connection: close" in heard.head


async def test_a_keep_alive_connection_outlives_the_limits(own_api: LeaseApiServer) -> None:
    lower(own_api, head_seconds=0.05, body_seconds=0.05)
    with await asyncio.to_thread(connect, own_api.url) as connection:
        for _ in range(3):
            request = message("POST", LEASES, b'{"metadata":{"generateName":"k-"}}')
            connection.sendall(request)
            assert (await asyncio.to_thread(hear, connection)).code == 201
            await asyncio.sleep(0.1)
