"""How many connections a port bears, which of them goes first, and what happens without files."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace

from leases.listener.limits import Connections, allow_open_files
from leases.listener.server import Acceptor, listen
from tests.listener.port import LIMITS, UPGRADE, port_with, request, until


async def test_the_oldest_idle_connection_is_cut_for_a_new_one():
    async with port_with(replace(LIMITS, waiting=5)) as port, AsyncExitStack() as open_ones:
        clients = []
        for _ in range(5):
            clients.append(await open_ones.enter_async_context(port.client()))
            await until(lambda: len(port.book) == len(clients), "it to be counted")
        await clients[0].send(request("GET", "/"))
        assert (await clients[0].answer())[0] == 200  # the oldest is now the second
        clients.append(await open_ones.enter_async_context(port.client()))
        assert await clients[1].is_cut()
        for client in (clients[0], *clients[2:]):
            await client.send(request("GET", "/"))
            assert (await client.answer())[0] == 200
        assert port.book.cut == 1


async def test_an_idle_port_looks_once_a_second_and_ends_at_once_when_asked_to():
    looks = []
    async with port_with(LIMITS) as port:
        server, look = port.server, port.server.on_tick

        async def counted(counter: int) -> bool:
            looks.append(counter)
            return await look(counter)

        server.on_tick = counted
        server.look_seconds = 3600.0  # from the next look on
        server.look_now()
        await until(lambda: looks, "a look")
        server.handle_exit(signal.SIGTERM, None)
        await until(lambda: len(looks) > 1, "the port to see it")
    assert len(looks) == 2


async def test_a_thousand_idle_connections_do_not_keep_a_page_waiting():
    async with port_with(LIMITS) as port, AsyncExitStack() as open_ones:
        for _ in range(300):
            await open_ones.enter_async_context(port.client())
        assert await port.get() == (200, b"0 bytes")
        assert len(port.book) <= LIMITS.waiting + 1


async def test_answers_in_progress_and_sockets_are_not_cut_for_idle_connections():
    limits = replace(LIMITS, connections=10, waiting=5)
    async with port_with(limits) as port, AsyncExitStack() as open_ones:
        asking = await open_ones.enter_async_context(port.client())
        await asking.send(request("GET", "/wait"))
        live = await open_ones.enter_async_context(port.client())
        await live.send(request("GET", "/live", *UPGRADE))
        assert (await live.answer())[0] == 101
        for _ in range(50):
            await open_ones.enter_async_context(port.client())
        await until(lambda: port.book.cut >= 40, "idle connections to be cut")
        port.app.release.set()
        assert await asking.answer() == (200, b"0 bytes")
        await live.send(b"\x81\x82\x00\x00\x00\x00hi")
        assert await asyncio.wait_for(live.reader.readexactly(3), 5) == b"\x81\x012"


async def test_a_full_port_says_so_and_recovers(caplog):
    limits = replace(LIMITS, connections=3, waiting=3)
    async with port_with(limits) as port, AsyncExitStack() as open_ones:
        for _ in range(3):
            client = await open_ones.enter_async_context(port.client())
            await client.send(request("GET", "/wait"))
        await until(lambda: len(port.app.begun) == 3, "three requests")
        for _ in range(20):
            code, text = await port.get()
            assert (code, text) == (
                503, b"Too many connections are open. Try again in a few seconds.\n"
            )  # fmt: skip
        port.app.release.set()
        assert (await client.answer())[0] == 200
        assert (await port.get())[0] == 200
    said = [record for record in caplog.records if "too many open connections" in record.message]
    assert len(said) == 1


@contextmanager
def no_files() -> Iterator[None]:
    """As if the process had as many open files as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    filled = []
    try:
        with suppress(OSError):
            while True:
                filled.append(os.open("/dev/null", os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in filled:
            os.close(number)


async def test_without_files_it_waits_logs_once_and_recovers(caplog):
    caplog.set_level(logging.WARNING)
    loop = asyncio.get_running_loop()
    async with port_with(replace(LIMITS, connections=500, waiting=500)) as port:
        async with AsyncExitStack() as open_ones:
            clients = [await open_ones.enter_async_context(port.client()) for _ in range(10)]
            await until(lambda: len(port.book) == 10, "ten connections")
            late = [open_ones.enter_context(socket.socket()) for _ in range(2)]
            with no_files():
                for one in late:
                    one.setblocking(False)
                    await loop.sock_connect(one, ("127.0.0.1", port.number))
                await until(lambda: port.book.cut >= 2, "room to be made")
                for one in late:
                    await loop.sock_sendall(one, request("GET", "/"))
                    answer = await asyncio.wait_for(loop.sock_recv(one, 1000), 20)
                    assert answer.startswith(b"HTTP/1.1 200")
            assert await clients[0].is_cut()
        assert (await port.get())[0] == 200
    said = [record for record in caplog.records if "cannot take a connection" in record.message]
    assert len(said) == 1
    assert "Too many open files" in said[0].message


async def test_a_connection_that_comes_while_accepting_ends_is_not_lost():
    loop, failed = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: failed.append(context))

    async def welcome(connection: socket.socket) -> None:
        connection.close()

    with listen("127.0.0.1", 0) as listener:
        accepting = asyncio.create_task(
            Acceptor("A port", Connections(LIMITS), welcome).run(listener)
        )
        await asyncio.sleep(0)
        with socket.create_connection(listener.getsockname()):
            loop.call_soon(accepting.cancel)  # runs before what reads the listener, but after epoll
            await asyncio.gather(accepting, return_exceptions=True)
            listener.accept()[0].close()  # it waits for whoever accepts next
    assert failed == []


def test_the_process_may_have_as_many_files_as_the_system_lets_it():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
        found = allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == found
        assert found in (hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limits_fit_the_files_there_are():
    fitted = replace(LIMITS, connections=4096, waiting=512, sockets=2048).within(1024)
    assert (fitted.connections, fitted.waiting, fitted.sockets) == (768, 384, 576)
