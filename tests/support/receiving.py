"""Receivers on loopback: an HTTP server that fails as it is told, and an SMTP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web


class Received(msgspec.Struct):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpReceiver:
    """Answers with `answers` one after the other, then with 200. Clear `go` to let it hang."""

    def __init__(self, answers: Iterable[web.Response] = ()) -> None:
        self.answers = list(answers)
        self.received: list[Received] = []
        self.taken: list[Received] = []  # those that were answered with 200
        self.url = ""
        self.go = asyncio.Event()
        self.go.set()

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.received.append(Received(request.path, dict(request.headers), body))
        await self.go.wait()
        if self.answers:
            return self.answers.pop(0)
        self.taken.append(self.received[-1])
        return web.Response(text="ok")


@asynccontextmanager
async def http_receiver(*answers: web.Response) -> AsyncIterator[HttpReceiver]:
    receiver = HttpReceiver(answers)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}"
    try:
        yield receiver
    finally:
        await runner.cleanup()


class SmtpReceiver:
    """Takes mail without encryption. `refuses` is the answer to DATA instead of taking it."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        self.envelopes: list[list[str]] = []
        self.refuses = ""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        envelope: list[str] = []
        writer.write(b"220 receiver\r\n")
        while line := (await reader.readline()).decode().strip():
            verb = line.split()[0].upper()
            if verb in ("MAIL", "RCPT"):
                envelope.append(line)
            if verb == "DATA" and not self.refuses:
                writer.write(b"354 go on\r\n")
                mail = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(mail.decode())
                self.envelopes.append(envelope)
            if verb == "DATA" and self.refuses:
                writer.write(f"{self.refuses}\r\n".encode())
                continue
            writer.write(b"221 bye\r\n" if verb == "QUIT" else b"250 ok\r\n")
            await writer.drain()
            if verb == "QUIT":
                break
        writer.close()


@asynccontextmanager
async def smtp_receiver() -> AsyncIterator[SmtpReceiver]:
    receiver = SmtpReceiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
