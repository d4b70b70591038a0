"""Watches and requests over plain sockets, in the test's own event loop."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.apiserver.clients import ADMIN, LEASES

LIMIT = 15


class Watch:
    """One open watch. `read` gives the next event, or None when the stream ended properly."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""
        self._lines = b""

    @classmethod
    async def open(
        cls, url: str, path: str = LEASES, *, accept: str = "application/json", **query: str
    ) -> Watch:
        where = urlsplit(url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        watch = cls(reader, writer)
        writer.write(request("GET", path, accept=accept, watch="1", **query))
        watch.head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LIMIT)
        return watch

    async def read(self) -> dict[str, Any] | None:
        while b"\n" not in self._lines:
            size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), LIMIT), 16)
            piece = await asyncio.wait_for(self.reader.readexactly(size + 2), LIMIT)
            if size == 0:
                return None
            self._lines += piece[:-2]
        line, _, self._lines = self._lines.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        return event

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def request(
    method: str,
    path: str,
    body: Any = None,
    *,
    content_type: str = "application/json",
    accept: str = "application/json",
    **query: str,
) -> bytes:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    target = f"{path}?{urlencode(query)}" if query else path
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n"
        f"Content-Type: {content_type}\r\nAccept: {accept}\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def call(url: str, method: str, path: str, body: Any = None, **more: str) -> dict[str, Any]:
    """One request on a connection of its own; the decoded answer."""
    _, _, found = await exchange(url, request(method, path, body, **more))
    return found  # type: ignore[no-any-return]


async def exchange(url: str, asked: bytes, *, decode: bool = True) -> tuple[int, bytes, Any]:
    """One request on a connection of its own: status, head and decoded body."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(asked)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LIMIT)
    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if line)
    answer = await reader.readexactly(int(fields[b"content-length"]))
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), head, json.loads(answer) if decode else answer


async def open_and_never_read(url: str, path: str = LEASES) -> socket.socket:
    """A watch whose client reads nothing."""
    where = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (where.hostname, where.port))
    await loop.sock_sendall(client, request("GET", path, watch="1"))
    return client
