"""Parts of libraries that are not documented: a version that has others fails here."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from dashboard.serving.runtime import MALLOC_OPTIONS
from leases.apiserver.http.port import CERTIFICATE, certificate_for, tls_context
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.http_session import RECEIVED, Timeouts, arrived_bytes, socket_of
from leases.kube.lease_client import LeaseClient
from tests.support.scripted_api import ScriptedServer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"


def test_aiohttp_is_the_minor_version_that_is_pinned():
    assert aiohttp.__version__.startswith("3.14.")


async def test_bytes_that_nobody_has_read_have_arrived_and_the_socket_is_known():
    go = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"12345")
        await go.wait()
        writer.write(b"67890")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with (
        server,
        asyncio.timeout(60),
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{port}/") as response,
    ):
        sock = socket_of(response)
        assert sock is not None
        assert sock.getpeername() == (host, port)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        while arrived_bytes(response) < 5:
            await asyncio.sleep(0)
        go.set()
        while arrived_bytes(response) < 10:
            await asyncio.sleep(0)
        assert await response.content.readany() == b"1234567890"
        assert arrived_bytes(response) == 10


async def test_over_tls_no_record_asks_for_more_room_than_malloc_has_at_hand(
    tmp_path: Path, limits: Timeouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate_for(tmp_path, "127.0.0.1", now=datetime.now(UTC))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / CERTIFICATE))
    asked, read = [], ssl.SSLObject.read

    def noted(one: ssl.SSLObject, length: int = 1024, buffer: bytearray | None = None) -> bytes:
        asked.append(length)
        return read(one, length, buffer)

    monkeypatch.setattr(ssl.SSLObject, "read", noted)
    async with ScriptedServer(tls_context(tmp_path)).running() as server:
        client = await connect(parse_source(f"url:{server.url}"), kubeconfig=None, limits=limits)
        assert await client.newest_version() == "200"
        await client.close()
    assert set(asked) == {RECEIVED}


async def test_no_read_of_a_watch_asks_for_more_room_than_malloc_has_at_hand(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    async with client.open_watch("100", timeout_seconds=60) as watch:
        transport = watch._response.connection.transport
        assert type(transport).max_size > RECEIVED  # asyncio's own; it reads as much as this says
        assert transport.max_size == RECEIVED
        assert MALLOC_OPTIONS["M_MMAP_THRESHOLD"][1] > RECEIVED
