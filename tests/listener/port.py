"""A port of one's own in the test's event loop, with limits that a test need not wait for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from leases.listener.limits import KIB, Limits
from leases.listener.protocol import FRAMES, LimitedProtocol, LimitedWebSocket
from leases.listener.server import ListeningServer, listen

LIMITS = Limits(
    head_bytes=64 * KIB,
    head_seconds=30.0,
    body_bytes=100 * KIB,
    body_seconds=30.0,
    stall_seconds=30.0,
    connections=40,
    waiting=20,
    sockets=10,
    pipelined=16,
)
LIMIT = 20.0


class App:
    """Answers with the size of the body; `/wait` answers when `release` is set, `/much` at length,
    and a WebSocket says what it got, under `/burst` after much, under `/flood` never stops sending.
    """

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.release = asyncio.Event()
        self.ended: list[str] = []
        self.writes: dict[str, Callable[[bytes], bool]] = {}  # frames, by the path of the socket

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        path = scope["path"]
        self.begun.append(path)
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if path == "/wait":
            await self.release.wait()
        answer = b"x" * (16 * 1024 * KIB) if path == "/much" else b"%d bytes" % len(body)
        length = (b"content-length", b"%d" % len(answer))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for at in range(0, len(answer), 64 * KIB):
            more = at + 64 * KIB < len(answer)
            part = answer[at : at + 64 * KIB]
            await send({"type": "http.response.body", "body": part, "more_body": more})

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        self.writes[scope["path"]] = scope["extensions"][FRAMES]["write"]
        left = 200 if scope["path"] == "/burst" else 0
        try:
            while True:
                if scope["path"] == "/flood" or left:
                    left -= 1
                    await send({"type": "websocket.send", "bytes": b"x" * 64 * KIB})
                    continue
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    return
                said = message.get("text") or message.get("bytes") or ""
                await send({"type": "websocket.send", "text": str(len(said))})
        finally:
            self.ended.append(scope["path"])


class Port:
    def __init__(self, server: ListeningServer, app: App, number: int) -> None:
        self.server = server
        self.book = server.server_state.book
        self.app = app
        self.number = number

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()

    async def get(self, path: str = "/") -> tuple[int, bytes]:
        """By a client that comes anew."""
        async with self.client() as client:
            await client.send(request("GET", path))
            return await client.answer()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """As far as the other side takes it."""
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), LIMIT)
        except ConnectionError:
            pass  # cut while sending; what was answered can still be read

    async def answer(self) -> tuple[int, bytes]:
        """Status and body; status 0 when the connection ends without an answer."""
        try:
            head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), LIMIT)
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""
        length = re.search(rb"content-length: ([0-9]+)", head)
        size = int(length[1]) if length else 0
        return int(head[9:12]), await asyncio.wait_for(self.reader.readexactly(size), LIMIT)

    async def is_cut(self) -> bool:
        """Whether the server ends the connection without a word."""
        try:
            return await asyncio.wait_for(self.reader.read(1), LIMIT) == b""
        except ConnectionError:
            return True


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


UPGRADE = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")  # fmt: skip


@asynccontextmanager
async def port_with(limits: Limits, **options: Any) -> AsyncIterator[Port]:
    app = App()
    config = uvicorn.Config(
        app, http=LimitedProtocol, ws=LimitedWebSocket, lifespan="off", log_config=None,
        access_log=False, ws_per_message_deflate=False, timeout_graceful_shutdown=1, **options,
    )  # fmt: skip
    server = ListeningServer(config, limits, name="The test's port")
    listener = listen("127.0.0.1", 0)
    number = listener.getsockname()[1]
    with _own_signals(server):
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield Port(server, app, number)
        finally:
            server.should_exit = True
            server.look_now()
            app.release.set()
            await serving


@contextmanager
def _own_signals(server: ListeningServer) -> Iterator[None]:
    @contextmanager
    def none() -> Iterator[None]:
        yield

    server.capture_signals = none  # type: ignore[method-assign]
    yield


async def until(look: Any, what: str) -> None:
    """Until `look()` is true; fails with `what` after a while."""
    async with asyncio.timeout(LIMIT):
        while not look():
            await asyncio.sleep(0.01)
    assert look(), what
