"""Attacks on the pages' port, each from this process for a bounded time and with bounded means.

    python -m tests.benchmarks.parts.attacks NAME PORT SECONDS [COOKIE]

Only for a server on loopback that the caller started for this.
"""

from __future__ import annotations

import asyncio
import re
import resource
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

HOST = "127.0.0.1"
MIB = 1024 * 1024
Attack = Callable[["Target"], Awaitable[None]]


class Target:
    def __init__(self, port: int, cookie: str = "") -> None:
        self.port = port
        self.cookie = cookie
        self.seen: Counter[str] = Counter()  # what was answered, and how connections ended

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.port)

    def head(self, method: str, path: str, *lines: str) -> bytes:
        first = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{self.port}"]
        return "\r\n".join([*first, *lines]).encode() + b"\r\n\r\n"

    async def ask(self, data: bytes) -> bytes:
        """One request on a connection of its own; the whole answer."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
        self.seen[answer[9:12].decode() or "cut"] += 1
        return answer


async def side_by_side(target: Target, clients: int, one: Attack) -> None:
    """So many clients, each of which begins anew when it is cut."""

    async def again() -> None:
        while True:
            try:
                await one(target)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                target.seen["cut"] += 1
                await asyncio.sleep(0.05)

    await asyncio.gather(*(again() for _ in range(clients)))


async def idle(target: Target) -> None:
    """1,500 connections that say nothing."""

    async def one(target: Target) -> None:
        reader, writer = await target.connect()
        try:
            await reader.read()
            target.seen["ended"] += 1
            await asyncio.sleep(0.5)
        finally:
            writer.close()

    await side_by_side(target, 1500, one)


async def heads(target: Target) -> None:
    """Eight heads without an end, as fast as they are taken."""

    async def one(target: Target) -> None:
        reader, writer = await target.connect()
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
            while not reader.at_eof():
                writer.write(b"X-Endless: " + b"y" * 65_000 + b"\r\n")
                await writer.drain()
        finally:
            writer.close()

    await side_by_side(target, 8, one)


async def unfinished(target: Target) -> None:
    """400 bodies that stop one byte before their end."""

    async def one(target: Target) -> None:
        reader, writer = await target.connect()
        try:
            writer.write(target.head("POST", "/sign-in/", "Content-Length: 1000000"))
            writer.write(b"x" * 999_999)
            await writer.drain()
            await reader.read()
            target.seen["ended"] += 1
        finally:
            writer.close()

    await side_by_side(target, 400, one)


async def huge(target: Target) -> None:
    """Four bodies of 600 MB at a time."""

    async def one(target: Target) -> None:
        reader, writer = await target.connect()
        try:
            writer.write(target.head("POST", "/healthz", f"Content-Length: {600 * MIB}"))
            for _ in range(600):
                writer.write(b"x" * MIB)
                await writer.drain()
                if reader.at_eof():
                    break
            answer = await reader.read()
            target.seen[answer[9:12].decode() or "cut"] += 1
        finally:
            writer.close()

    await side_by_side(target, 4, one)


async def sign_ins(target: Target) -> None:
    """64 clients that guess the admin's password."""
    page = await target.ask(target.head("GET", "/sign-in/", "Connection: close"))
    cookie = re.search(rb"(csrftoken_\w+=\w+)", page)
    token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert cookie is not None
    assert token is not None
    body = b"csrfmiddlewaretoken=%s&username=admin&password=wrong-guess" % token[1]
    lines = (f"Cookie: {cookie[1].decode()}", f"Content-Length: {len(body)}",
             "Content-Type: application/x-www-form-urlencoded", "Connection: close")  # fmt: skip
    guess = target.head("POST", "/sign-in/", *lines) + body

    async def one(target: Target) -> None:
        await target.ask(guess)

    await side_by_side(target, 64, one)


async def bad_hosts(target: Target) -> None:
    """16 clients that ask for a host that is none of ours."""
    data = b"GET /sign-in/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"

    async def one(target: Target) -> None:
        await target.ask(data)

    await side_by_side(target, 16, one)


async def silent_sockets(target: Target) -> None:
    """100 sockets of a signed-in user that are opened and never read."""
    lines = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Cookie: {target.cookie}",
             f"Origin: http://{HOST}:{target.port}")  # fmt: skip

    async def one(target: Target) -> None:
        reader, writer = await target.connect()
        try:
            writer.write(target.head("GET", "/c/embedded/live/changes/", *lines))
            head = await reader.readuntil(b"\r\n\r\n")
            target.seen[head[9:12].decode()] += 1
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            while True:
                writer.write((b"\x89\xfd" + b"\x00" * 4 + b"p" * 125) * 100)
                await writer.drain()
        finally:
            writer.close()

    await side_by_side(target, 100, one)


ATTACKS: dict[str, Attack] = {
    "idle": idle,
    "heads": heads,
    "unfinished": unfinished,
    "huge": huge,
    "sign-ins": sign_ins,
    "bad-hosts": bad_hosts,
    "silent-sockets": silent_sockets,
}


async def attack(name: str, target: Target, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ATTACKS[name](target)


def main() -> None:
    name, port, seconds, *cookie = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    target = Target(int(port), *cookie)
    asyncio.run(attack(name, target, float(seconds)))
    print(dict(target.seen.most_common(6)))


if __name__ == "__main__":
    main()
