"""WebSockets: how many, how large a message, and what becomes of one that does not read."""

from __future__ import annotations

import asyncio
import struct
from contextlib import AsyncExitStack
from dataclasses import replace

from leases.listener.limits import KIB
from leases.listener.protocol import READ_BYTES
from tests.listener.port import LIMITS, UPGRADE, Client, Port, port_with, request, until

MASK = b"\x00\x00\x00\x00"


def text_frame(size: int, *, opcode: int = 0x81) -> bytes:
    return struct.pack("!BBQ", opcode, 0xFF, size) + MASK + b"x" * size


async def upgraded(port: Port, stack: AsyncExitStack, path: str = "/live") -> Client:
    client = await stack.enter_async_context(port.client())
    await client.send(request("GET", path, *UPGRADE))
    assert (await client.answer())[0] == 101
    return client


async def closing_code(client: Client) -> int:
    head = await asyncio.wait_for(client.reader.readexactly(4), 20)
    assert head[0] == 0x88
    return int.from_bytes(head[2:])


async def test_a_message_within_the_limit_is_heard_and_a_larger_one_closes():
    async with port_with(LIMITS, ws_max_size=256 * KIB) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack)
        await live.send(text_frame(200_000))
        assert await asyncio.wait_for(live.reader.readexactly(8), 20) == b"\x81\x06200000"
        await live.send(text_frame(256 * KIB + 1))
        assert await closing_code(live) == 1009
        await until(lambda: len(port.book) == 0, "the socket to end")


async def test_a_message_in_endless_empty_pieces_is_cut():
    async with port_with(LIMITS) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack)
        await live.send(b"\x01\x80" + MASK + (b"\x00\x80" + MASK) * 1000)
        assert await live.is_cut()
        await until(lambda: len(port.book) == 0, "the socket to end")


async def test_one_socket_too_many_gets_a_close_reason():
    async with port_with(replace(LIMITS, sockets=2)) as port, AsyncExitStack() as stack:
        first = await upgraded(port, stack)
        await upgraded(port, stack)
        code, text = await port_get_upgrade(port)
        assert code == 503
        assert text == b"Too many live connections are open. Try again in a minute.\n"
        first.writer.close()
        await until(lambda: len(port.book.sockets) == 1, "one to end")
        await upgraded(port, stack)


async def port_get_upgrade(port: Port) -> tuple[int, bytes]:
    async with port.client() as client:
        await client.send(request("GET", "/live", *UPGRADE))
        return await client.answer()


async def test_a_socket_that_does_not_read_is_cut():
    async with port_with(replace(LIMITS, stall_seconds=0.3)) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack, "/flood")
        live.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: len(port.book) == 0, "the socket to end")
        await until(lambda: port.app.ended == ["/flood"], "the app to hear of it")


async def test_a_frame_is_written_at_once_unless_it_would_wait_or_the_socket_has_ended():
    frame = b"\x81\x02hi"
    async with port_with(LIMITS) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack)
        await until(lambda: "/live" in port.app.writes, "the app to accept")
        assert port.app.writes["/live"](frame)
        assert await asyncio.wait_for(live.reader.readexactly(4), 20) == frame
        slow = await upgraded(port, stack, "/flood")
        slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: not port.app.writes["/flood"](frame), "its buffer to be full")
        live.writer.close()
        await until(lambda: not port.app.writes["/live"](frame), "the socket to end")


async def test_a_socket_that_floods_with_pings_is_cut():
    async with port_with(LIMITS) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack)
        await live.send((b"\x89\x80" + MASK) * 10)
        assert await asyncio.wait_for(live.reader.readexactly(20), 20) == b"\x8a\x00" * 10
        (held,) = port.book.sockets
        assert held.transport.max_size == READ_BYTES  # type: ignore[attr-defined]
        await live.send((b"\x89\x80" + MASK) * 100)
        await until(lambda: len(port.book) == 0, "the socket to end")


async def read_on(client: Client) -> None:
    while await client.reader.read(1_000_000):
        pass


async def test_a_socket_that_does_not_read_is_read_no_more():
    async with port_with(LIMITS) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack, "/burst")
        live.reader._transport.pause_reading()  # type: ignore[attr-defined]
        (socket,) = port.book.sockets
        await until(lambda: not socket.writable.is_set(), "it to be full")  # type: ignore[attr-defined]
        assert not socket.transport.is_reading()  # type: ignore[attr-defined]
        live.reader._transport.resume_reading()  # type: ignore[attr-defined]
        reading = asyncio.create_task(read_on(live))
        await until(lambda: socket.transport.is_reading(), "it to be read again")  # type: ignore[attr-defined]
        reading.cancel()


async def test_a_socket_that_answers_no_ping_is_cut():
    options = {"ws_ping_interval": 0.1, "ws_ping_timeout": 0.1}
    async with port_with(LIMITS, **options) as port, AsyncExitStack() as stack:
        live = await upgraded(port, stack)
        await until(lambda: len(port.book) == 0, "the socket to end")
        assert live.writer.is_closing() is False
