"""Clients that do not read what they asked for: one budget for all, and nobody else pays."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from leases.apiserver.serving import LeaseApiServer
from leases.listener.limits import KIB, MIB
from tests.apiserver.clients import LEASES, Process, lease, make_tokens
from tests.apiserver.watch import streams
from tests.apiserver.watch.crowd import Crowd, resident_mib
from tests.apiserver.watch.streams import Watch, call, exchange, open_and_never_read, request

if TYPE_CHECKING:
    from leases.listener.limits import Unread

LARGE = "x" * 1_000_000
HEALTHY = 20
LARGE_ONES = 6
# Without a budget 400 watches take 570 MiB more, and 100 lists 600; with it 160 and 140.
MOST_MIB = 350


async def ask_and_never_read(url: str, *, gzip: bool = False) -> socket.socket:
    """A list whose client reads nothing."""
    where = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (where.hostname, where.port))
    asked = request("GET", LEASES)
    if gzip:
        asked = asked.replace(b"Accept:", b"Accept-Encoding: gzip\r\nAccept:")
    await loop.sock_sendall(client, asked)
    return client


@pytest.mark.parametrize(
    ("opened", "many"),
    [
        (open_and_never_read, 400),
        (ask_and_never_read, 200),
        pytest.param(partial(ask_and_never_read, gzip=True), 200, marks=pytest.mark.long),
    ],
)
async def test_many_who_never_read_take_little_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: Callable[[str], Awaitable[socket.socket]],
    many: int,
) -> None:
    monkeypatch.setattr(streams, "LIMIT", 90)  # gigabytes are written and cut meanwhile
    with Process(tmp_path / "data") as api, ExitStack() as stack:
        await fill(api.url)
        async with Crowd(api.url, HEALTHY) as crowd:
            assert api.process is not None
            before = resident_mib(api.process.pid)
            api.process.send_signal(signal.SIGSTOP)  # then all of them ask at once
            for _ in range(many):
                stack.enter_context(await opened(api.url))
            api.process.send_signal(signal.SIGCONT)
            changed = lease("lease-1", holderIdentity=LARGE + "y")
            await call(api.url, "PUT", f"{LEASES}/lease-1", changed)
            made = await call(api.url, "POST", LEASES, lease("c"))
            await crowd.reached(int(made["metadata"]["resourceVersion"]), within=90)
            most = resident_mib(api.process.pid, "VmHWM")
            assert not any(watch.ended for watch in crowd.watches)
        print(f"RSS {before:.0f} MiB before, {most:.0f} MiB at most with {many} readers")
        assert most - before < MOST_MIB
        assert "Traceback" not in api.log.read_text()


@pytest.fixture
async def own_api(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    """A server in this event loop, whose budget a test can lower."""
    make_tokens(tmp_path)
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    yield server
    await server.stop()


async def fill(url: str) -> None:
    """More than the kernel keeps for a connection."""
    for number in range(LARGE_ONES):
        await call(url, "POST", LEASES, lease(f"lease-{number}", holderIdentity=LARGE))


def unread_of(api: LeaseApiServer) -> Unread:
    assert api._server is not None
    return api._server.server_state.unread


async def test_the_slowest_watch_is_told_gone(own_api: LeaseApiServer) -> None:
    unread = unread_of(own_api)
    unread.limit = MIB
    slow = await open_and_never_read(own_api.url)
    async with Crowd(own_api.url, HEALTHY) as crowd:
        number = 0
        while not unread.given_up and number < 800:
            number += 1
            name = f"lease-{number}"
            made = await call(own_api.url, "POST", LEASES, lease(name, holderIdentity="x" * 30_000))
            await crowd.reached(int(made["metadata"]["resourceVersion"]))
    assert unread.given_up == 1
    reader, writer = await asyncio.open_connection(sock=slow)
    watch = Watch(reader, writer)
    await reader.readuntil(b"\r\n\r\n")
    events = []
    while (event := await watch.read()) is not None:
        events.append(event)
    await watch.close()
    *heard, last = events
    assert len(heard) < number, "it had not taken everything"
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    assert last["object"]["reason"] == "Expired"
    assert "read in time" in last["object"]["message"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in heard]
    assert versions == sorted(set(versions)), "what came before it is whole and in order"
    assert unread.bytes == 0


async def test_the_budget_is_free_again_when_clients_go(own_api: LeaseApiServer) -> None:
    unread = unread_of(own_api)
    await fill(own_api.url)
    kinds = (open_and_never_read, ask_and_never_read) * 3
    clients = [await opened(own_api.url) for opened in kinds]
    async with asyncio.timeout(15):
        while len(unread._waiting) < len(clients):
            await asyncio.sleep(0.01)
    assert unread.bytes > len(clients) * 64 * KIB
    for client in clients:
        client.close()
    async with asyncio.timeout(15):
        while unread.bytes:
            await asyncio.sleep(0.01)
    assert not unread._readers
    assert unread.given_up == 0


async def test_a_slow_reader_of_a_large_list_gets_all_of_it(own_api: LeaseApiServer) -> None:
    await fill(own_api.url)
    code, _, found = await exchange(own_api.url, request("GET", LEASES))
    assert code == 200
    assert [item["spec"]["holderIdentity"] for item in found["items"]] == [LARGE] * LARGE_ONES
