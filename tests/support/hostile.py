"""Counterparts on loopback that never answer, drip, flood or lie, whatever they are asked.

python3 -m tests.support.hostile    prints one line of JSON: the port of each behaviour
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import chain, repeat

import msgspec

DRIP_SECONDS = 0.05
MEBIBYTE = 1024 * 1024


class Behaviour(msgspec.Struct, frozen=True):
    """Sends `first` at once, then `piece` again and again; "" never. `pause` is between two."""

    first: bytes = b""
    piece: bytes = b""
    pause: float = 0.0

    def pieces(self) -> Iterator[bytes]:
        first = [self.first] if self.first else []
        return chain(first, repeat(self.piece) if self.piece else ())


def _many(line: bytes) -> bytes:
    return line * (64 * 1024 // len(line))


GREETING = b"220 here\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
BEHAVIOURS = {
    "silent": Behaviour(),
    # By SMTP.
    "drips lines": Behaviour(piece=b"220-wait\r\n", pause=DRIP_SECONDS),
    "drips bytes": Behaviour(piece=b"2", pause=DRIP_SECONDS),
    "drips after its greeting": Behaviour(first=GREETING, piece=b"250-a\r\n", pause=DRIP_SECONDS),
    "floods lines": Behaviour(piece=_many(b"220-wait a moment\r\n")),
    "floods after its greeting": Behaviour(first=GREETING, piece=_many(b"250-wait\r\n")),
    "floods one line": Behaviour(piece=_many(b"2")),
    "answers no mail": Behaviour(first=OK + b"\r\n"),
    "answers other codes": Behaviour(first=GREETING, piece=b"999 what\r\n", pause=DRIP_SECONDS),
    # Over HTTP.
    "drips a status": Behaviour(first=OK[:-2], piece=b"x", pause=DRIP_SECONDS),
    "drips 102": Behaviour(piece=b"HTTP/1.1 102 Processing\r\n\r\n", pause=DRIP_SECONDS),
    "drips a body": Behaviour(first=OK + b"\r\n", piece=b"x", pause=DRIP_SECONDS),
    "floods 102": Behaviour(piece=_many(b"HTTP/1.1 102 Processing\r\n\r\n")),
    "floods headers": Behaviour(first=OK, piece=_many(b"a: b\r\n")),
    "floods a header": Behaviour(first=OK + b"a: ", piece=_many(b"b")),
    "floods a body": Behaviour(first=OK + b"\r\n", piece=_many(b"x")),
    "lies about its length": Behaviour(first=OK + b"content-length: -5\r\n\r\n"),
    "answers no HTTP": Behaviour(first=GREETING),
}


class Hostile:
    """One server of one behaviour."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.port = 0
        self.sent = 0  # bytes that the kernel took
        self.left = asyncio.Event()  # a client has closed its connection
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving[task] = writer
        writing = asyncio.create_task(self._write(writer))
        with suppress(ConnectionError):
            while await reader.read(64 * 1024):
                pass
        self.left.set()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()
        del self._serving[task]

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)
        for piece in self.behaviour.pieces():
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)
            await asyncio.sleep(self.behaviour.pause)

    async def end(self) -> None:
        for writer in self._serving.values():
            writer.transport.abort()
        await asyncio.gather(*self._serving)


@asynccontextmanager
async def hostile(name: str) -> AsyncIterator[Hostile]:
    one = Hostile(BEHAVIOURS[name])
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        await one.end()


async def _serve_all() -> None:
    ports = {}
    for name, behaviour in BEHAVIOURS.items():
        server = await asyncio.start_server(Hostile(behaviour).serve, "127.0.0.1", 0)
        ports[name] = server.sockets[0].getsockname()[1]
    print(json.dumps(ports), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve_all())
