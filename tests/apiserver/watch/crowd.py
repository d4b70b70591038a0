"""Many watches at once over plain sockets, cheap enough that one process can hold a thousand."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import msgspec

from tests.apiserver.clients import LEASES, Process, lease
from tests.apiserver.watch.streams import LIMIT, call, open_and_never_read, request

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
# What an event ends with and nothing inside of one does: compact JSON has no line breaks.
_END = b"}\n"
LARGE = "x" * 100_000
EVERYWHERE = LEASES.replace("/namespaces/default", "")
ELSEWHERE = LEASES.replace("default", "kube-system")
MOST_WRITES = 300
TCP_CLOSE = 7  # of linux/tcp_states.h


class Watching(asyncio.Protocol):
    """One watch: the resourceVersion of every event that arrived, in order."""

    def __init__(self, ask: bytes) -> None:
        self.versions: list[int] = []
        self.answered = asyncio.Event()
        self.ended = False
        self._ask = ask
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._ask)

    def data_received(self, data: bytes) -> None:
        self.answered.set()
        whole, mark, rest = (self._rest + data).rpartition(_END)
        self._rest = rest
        self.versions += map(int, _VERSION.findall(whole + mark))

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = True


class Crowd:
    """`count` watches of one path, each from now on."""

    def __init__(self, url: str, count: int, path: str = LEASES) -> None:
        self._where = urlsplit(url)
        self._ask = request("GET", path, watch="1", resourceVersion="0")
        self.watches = [Watching(self._ask) for _ in range(count)]
        self._transports: list[asyncio.BaseTransport] = []

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for watch in self.watches:
            transport, _ = await loop.create_connection(
                lambda watch=watch: watch,  # type: ignore[misc]
                self._where.hostname,
                self._where.port,
            )
            self._transports.append(transport)
        for watch in self.watches:
            await asyncio.wait_for(watch.answered.wait(), LIMIT)
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports:
            transport.close()
        await self.until(lambda: all(watch.ended for watch in self.watches))

    async def reached(self, version: int, *, within: float = LIMIT) -> None:
        """Wait until every watch has come to this resourceVersion."""
        await self.until(
            lambda: all(watch.versions[-1:] >= [version] for watch in self.watches), within=within
        )

    async def until(self, true: Callable[[], bool], *, within: float = LIMIT) -> None:
        async with asyncio.timeout(within):
            while not true():
                await asyncio.sleep(0.01)

    @property
    def delivered(self) -> int:
        return sum(len(watch.versions) for watch in self.watches)


def resident_mib(pid: int, which: str = "VmRSS") -> float:
    """Memory that a process holds, in MiB; VmHWM: that it ever held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} is gone")


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Outcome(msgspec.Struct):
    """What became of a crowd: the versions written, those that each watch received, whether the
    reader that never reads was cut, and the server's memory in MiB.
    """

    written: list[int]
    received: list[list[int]]
    cut: bool
    before: float
    most: float


async def outlast_a_reader_that_never_reads(api: Process, *, watchers: int) -> Outcome:
    """Write until the watch that nobody reads is cut: large Leases, which go to it alone, and
    small ones, which go to all.
    """
    assert api.process is not None
    pid = api.process.pid
    async with Crowd(api.url, watchers) as crowd:
        idle = await open_and_never_read(api.url, EVERYWHERE)
        before = most = resident_mib(pid)
        written: list[int] = []
        cut = False
        while not cut and len(written) < MOST_WRITES:
            name = f"lease-{len(written)}"
            await call(api.url, "POST", ELSEWHERE, lease(name, holderIdentity=LARGE))
            made = await call(api.url, "POST", LEASES, lease(name))
            written.append(int(made["metadata"]["resourceVersion"]))
            await crowd.reached(written[-1])
            most = max(most, resident_mib(pid))
            cut = is_cut(idle)
        idle.close()
        received = [watch.versions for watch in crowd.watches]
    return Outcome(written, received, cut, before, most)


def is_cut(client: socket.socket) -> bool:
    """Whether the server has dropped a connection, found out without reading the rest of it."""
    state: int = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state == TCP_CLOSE
