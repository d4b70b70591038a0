"""A server on loopback that answers by script, in real bytes: faults no healthy server shows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec

End = Literal["clean", "cut", "reset", "hang", "open"]
Reply = Callable[["Connection"], Awaitable[None]]


class Request(msgspec.Struct, frozen=True):
    """What the client asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """list, page, watch, probe or verb: which script answers it."""
        if self.query.get("watch") == "true":
            return "watch"
        if self.method != "GET" or not self.path.endswith("/v1/leases"):
            return "verb"
        if self.query.get("limit") == "1":
            return "probe"
        return "page" if "continue" in self.query else "list"


class Connection:
    """One request's connection, as a reply sees it."""

    def __init__(self, writer: asyncio.StreamWriter, stopped: asyncio.Event) -> None:
        self.writer = writer
        self._stopped = stopped

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hang(self) -> None:
        """Say nothing more, and keep the connection open."""
        await self._stopped.wait()

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class ScriptedServer:
    """Answers each kind of request with its next reply; the last of a script answers for ever.

    With a context it speaks TLS.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self.requests: list[Request] = []
        self.scripts: dict[str, deque[Reply]] = {
            "list": deque([listing()]),
            "probe": deque([listing(version="200")]),
            "watch": deque([stream(end="hang")]),
        }
        self.port = 0
        self._stopped = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http{'s' if self._context else ''}://127.0.0.1:{self.port}"

    def script(self, kind: str, *replies: Reply) -> None:
        self.scripts[kind] = deque(replies)

    def seen(self, kind: str) -> list[Request]:
        return [request for request in self.requests if request.kind == kind]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ScriptedServer]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._stopped.set()
            server.close()
            await asyncio.gather(*self._serving)
            await server.wait_closed()
            self._stopped = asyncio.Event()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stopped = self._stopped
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await _read(reader)
            self.requests.append(request)
            script = self.scripts[request.kind]
            reply = script[0] if len(script) == 1 else script.popleft()
            await reply(Connection(writer, stopped))
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    url = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    return Request(method, url.path, query, headers, body)


def answer(status: int, body: Any = None, **headers: str) -> Reply:
    """A whole answer; a body that is no bytes goes as JSON."""

    async def reply(connection: Connection) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\nConnection: close\r\n{extra}"
        await connection.send(head.encode() + b"\r\n" + text)

    return reply


def silence() -> Reply:
    """The request is taken, and nothing ever said."""
    return Connection.hang


def listing(*leases: dict[str, Any], version: str = "100", next_page: str = "") -> Reply:
    """One page of a list."""
    meta = {"resourceVersion": version} | ({"continue": next_page} if next_page else {})
    return answer(200, {"metadata": meta, "items": list(leases)})


def stream(*parts: bytes, end: End = "clean") -> Reply:
    """A watch that sends each part as a chunk of its own, then ends in this way.

    clean: the final chunk; cut: the connection ends without it; reset: RST; hang: open, silent;
    open: whoever called goes on.
    """

    async def reply(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            await connection.send(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await asyncio.sleep(0)
        if end == "clean":
            await connection.send(b"0\r\n\r\n")
        elif end == "hang":
            await connection.hang()
        elif end == "reset":
            await asyncio.sleep(0.05)  # a RST on the heels of data would take the data with it
            connection.reset()

    return reply


def lease(name: str, *, version: int, holder: str = "a") -> dict[str, Any]:
    """A Lease in namespace ns."""
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}


def event(kind: str, content: dict[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": content}, separators=(",", ":")).encode() + b"\n"


def modified(name: str, *, version: int, holder: str = "a") -> bytes:
    return event("MODIFIED", lease(name, version=version, holder=holder))


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}, "spec": {}})


def status(code: int, reason: str, message: str = "as scripted", **more: Any) -> dict[str, Any]:
    """A Status, as the body of an error answer or the object of an ERROR event."""
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        **more,
    }


GONE = status(410, "Expired", "too old resource version: 100 (900)")
