"""Hundreds of walls of one link: when each is told of a change, and what a message costs.

python3 -m tests.benchmarks.parts.walls LISTEN     is the process that `websockets.broadcast` needs

Both are asked for the same: a message of the same size to as many sockets, as often.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, broadcast, serve

from tests.benchmarks.parts.figures import Usage, percentile, spread
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import ROOT, Server, free_port, serving, wait_for

ELECTIONS = 12
EVERY = 1.0  # seconds between two changes
KIND = "application/merge-patch+json"
SETTLE = 5.0
LIKE_BROWSERS: dict[str, Any] = {"compression": None, "ping_interval": None}


class Walls:
    """Sockets that note when they first hear of each holder."""

    def __init__(self) -> None:
        self.messages = self.bytes = 0
        self.heard: dict[str, list[float]] = {}

    async def keep(self, socket: ClientConnection) -> None:
        seen = set[str]()
        async for text in socket:
            self.messages += 1
            self.bytes += len(text)
            if isinstance(text, bytes):
                continue
            for holder in set(re.findall(r"holder-of-turn-\d+", text)) - seen:
                seen.add(holder)
                self.heard.setdefault(holder, []).append(time.time())


def fill(server: Server) -> LeaseApi:
    api = LeaseApi(server.kubeconfig)
    for number in range(2 * ELECTIONS):
        api.create(f"election-{number}", holder="first", duration=3600)
    return api


async def open_walls(stack: AsyncExitStack, address: str, number: int) -> Walls:
    """So many walls as a browser opens them; the page is fetched once."""
    page = await asyncio.to_thread(_page, address)
    there = urlsplit(address)
    url = f"ws://{there.netloc}{there.path.replace('wall/', 'live/page/')}?{there.query}"
    tiles = re.findall(r'data-tile="([^"]+)"', page)
    (feed,) = re.findall(r'data-feed="(\d+)"', page)
    (drawn,) = re.findall(r'data-drawn="([^"]+)"', page)
    show = {"show": {"tile": tiles}, "feed": int(feed), "jumps": 0, "drawn": drawn}
    walls = Walls()
    for _ in range(number):
        socket = await stack.enter_async_context(connect(url, **LIKE_BROWSERS))
        await socket.send(json.dumps(show))
        stack.push_async_callback(cancelled, asyncio.create_task(walls.keep(socket)))
    return walls


def _page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


async def hand_over(api: LeaseApi, seconds: float, name: str, first: int) -> dict[str, float]:
    """Give an election a new holder each second; when each was asked for.

    From the `first` one on: what was handed over before costs more, with walls and without.
    """
    moments: dict[str, float] = {}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        holder = f"{name}-{len(moments)}"
        moments[holder] = time.time()
        path = f"{leases()}/election-{first + len(moments) % ELECTIONS}"
        body = {"spec": {"holderIdentity": holder}}
        await asyncio.to_thread(api.send, "PATCH", path, body, KIND)
        await asyncio.sleep(EVERY)
    return moments


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def measure_leaseboard(folder: Path, number: int, seconds: float) -> tuple[float, int]:
    """CPU microseconds for each message, and the bytes of one."""
    with serving(folder / "data", "--no-demo") as server:
        server.wait_synced()
        api = await asyncio.to_thread(fill, server)
        await asyncio.sleep(SETTLE)
        alone = Usage(server.process.pid)
        await hand_over(api, seconds, "nobody-hears", 0)
        share = alone.share
        async with AsyncExitStack() as stack:
            walls = await open_walls(stack, server.printed("Wall"), number)
            await asyncio.sleep(SETTLE)
            usage, before, size = Usage(server.process.pid), walls.messages, walls.bytes
            moments = await hand_over(api, seconds, "holder-of-turn", ELECTIONS)
            await asyncio.sleep(2)
            cpu, messages = usage.seconds * (1 - share / usage.share), walls.messages - before
            size = (walls.bytes - size) // max(1, messages)
    late = [1000 * (at - moments[one]) for one, times in walls.heard.items() for at in times]
    turns = len(moments)
    print(f"{turns} changes to {number} walls: {len(late)} of {turns * number} were heard")
    print(f"PATCH to a wall's socket: {spread(late)}, p99 {percentile(late, 0.99):.0f} ms")
    print(f"{share:.1f} % of one core without walls; beside that, CPU {cpu:.2f} s")
    print(f"for {messages:,} messages of {size:,} bytes", flush=True)
    return 1_000_000 * cpu / messages, size


async def measure_broadcast(number: int, messages: int, size: int) -> float:
    """CPU microseconds for each message of `websockets.broadcast`."""
    port = free_port()
    command = [sys.executable, "-m", "tests.benchmarks.parts.walls", str(port)]
    process = await asyncio.to_thread(subprocess.Popen, command, cwd=ROOT)
    try:
        await asyncio.to_thread(wait_for, lambda: _listens(port), what="the other server")
        async with AsyncExitStack() as stack:
            walls, url = Walls(), f"ws://127.0.0.1:{port}/"
            for _ in range(number):
                socket = await stack.enter_async_context(connect(url, **LIKE_BROWSERS))
                stack.push_async_callback(cancelled, asyncio.create_task(walls.keep(socket)))
            usage = Usage(process.pid)
            for _ in range(messages):
                await socket.send(str(size))
                await asyncio.sleep(EVERY)  # as often: open sockets cost pings as well
            await asyncio.sleep(2)
            cpu, heard = usage.seconds, walls.messages
    finally:
        process.terminate()
        process.wait(timeout=30)
    print(f"websockets.broadcast: CPU {cpu:.2f} s for {heard:,} messages", flush=True)
    return 1_000_000 * cpu / heard


def _listens(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def measure_walls(folder: Path, number: int, seconds: float) -> int:
    """1 if a change came later than 1 s (p99 is printed), or a message costs more than 3 times."""
    ours, size = asyncio.run(measure_leaseboard(folder, number, seconds))
    theirs = asyncio.run(measure_broadcast(number, int(seconds), size))
    ratio = ours / theirs
    print(f"a message costs {ours:.1f} µs, of websockets.broadcast {theirs:.1f} µs: {ratio:.2f} x")
    return int(ratio > 3)


async def play(port: int) -> None:
    """Send a message of the asked size to every socket."""
    everybody = set[ServerConnection]()

    async def keep(socket: ServerConnection) -> None:
        everybody.add(socket)
        async for size in socket:
            broadcast(everybody, "x" * int(size))

    async with serve(keep, "127.0.0.1", port, compression=None):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(play(int(sys.argv[1])))
