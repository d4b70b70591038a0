"""aiohttp's parts that are not documented: a version that has others fails here."""

from __future__ import annotations

import asyncio
import socket

import aiohttp

from leases.kube.http_session import arrived_bytes, socket_of

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
