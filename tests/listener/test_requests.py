"""Heads and bodies: how large they may be, how long they may take, and what becomes of others."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from leases.listener.limits import KIB, MIB
from tests.listener.port import LIMITS, port_with, request, until


async def test_a_request_within_the_limits_is_answered():
    async with port_with(LIMITS) as port, port.client() as client:
        for size in (0, 1, 50_000, 100 * KIB):
            body = b"x" * size
            await client.send(request("POST", "/", body=body))
            assert await client.answer() == (200, b"%d bytes" % size)


async def test_a_body_in_chunks_within_the_limits_is_answered():
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(request("POST", "/", "Transfer-Encoding: chunked"))
        for _ in range(20):
            await client.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        await client.send(b"0\r\n\r\n")
        assert await client.answer() == (200, b"20000 bytes")


async def test_a_client_that_expects_100_continue_gets_it():
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(request("POST", "/", "Content-Length: 5", "Expect: 100-continue"))
        assert await client.answer() == (100, b"")
        await client.send(b"hello")
        assert await client.answer() == (200, b"5 bytes")


async def test_requests_sent_at_once_are_answered_in_order():
    async with port_with(LIMITS) as port, port.client() as client:
        sizes = [3, 0, 7, 20_000, 1]
        await client.send(b"".join(request("POST", "/", body=b"x" * size) for size in sizes))
        for size in sizes:
            assert await client.answer() == (200, b"%d bytes" % size)


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read():
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(request("POST", "/", f"Content-Length: {600 * MIB}"))
        code, text = await client.answer()
        assert code == 413
        assert text == b"A request's body may have 100 KiB at most.\n"
        assert await client.is_cut()
        assert port.app.begun == []


async def test_a_body_in_chunks_is_refused_once_it_is_too_large():
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(request("POST", "/", "Transfer-Encoding: chunked"))
        for _ in range(11):
            await client.send(b"2800\r\n" + b"x" * 10_240 + b"\r\n")
        assert (await client.answer())[0] == 413
        assert await client.is_cut()
        assert port.app.begun == []


async def test_a_body_in_tiny_chunks_or_with_endless_trailers_is_refused():
    for piece in (b"1;" + b"e" * 1000 + b"\r\nx\r\n", b"0\r\n" + b"X: " + b"y" * 2000 + b"\r\n"):
        async with port_with(LIMITS) as port, port.client() as client:
            await client.send(request("POST", "/", "Transfer-Encoding: chunked") + piece)
            more = piece if piece[0] == 49 else b"X: " + b"y" * 2000 + b"\r\n"
            for _ in range(2000):
                await client.send(more)
                if client.reader.at_eof() or port.book.answering:
                    break
            assert (await client.answer())[0] in (0, 413)
            assert port.app.begun == []


@pytest.mark.parametrize("size", [64 * KIB + 1, 200 * KIB])
async def test_a_head_that_is_too_large_is_refused(size):
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(request("GET", "/", "X: " + "y" * size))
        code, text = await client.answer()
        assert (code, text) == (431, b"A request's head may have 64 KiB at most.\n")
        assert await client.is_cut()
        assert port.app.begun == []


async def test_a_head_without_end_is_refused():
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        for _ in range(100):
            await client.send(b"y" * 4096)
        assert (await client.answer())[0] in (0, 431)
        await until(lambda: len(port.book) == 0, "the connection to end")


async def test_a_head_that_does_not_come_in_time_is_hung_up_on():
    async with port_with(replace(LIMITS, head_seconds=0.2)) as port:
        async with port.client() as client:
            assert await client.is_cut()  # it sent nothing
        async with port.client() as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
            assert (await client.answer())[0] == 408
            assert await client.is_cut()


async def test_a_body_that_does_not_come_in_time_is_refused():
    async with port_with(replace(LIMITS, body_seconds=0.2)) as port, port.client() as client:
        await client.send(request("POST", "/", "Content-Length: 10") + b"12345")
        code, text = await client.answer()
        assert (code, text) == (408, b"The request's body did not come in time.\n")
        assert await client.is_cut()
        assert port.app.begun == []


async def test_the_app_sees_no_request_whose_body_is_unfinished():
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(request("POST", "/", "Content-Length: 10") + b"12345")
        assert await port.get("/other") == (200, b"0 bytes")
        assert port.app.begun == ["/other"]
        await client.send(b"67890")
        assert await client.answer() == (200, b"10 bytes")


async def test_unfinished_requests_cannot_fill_the_memory():
    limits = replace(LIMITS, large_bytes=10_000, large=2)
    part = request("POST", "/", "Content-Length: 99999") + b"x" * 20_000
    async with port_with(limits) as port, AsyncExitStack() as stack:
        first, second, third = [await stack.enter_async_context(port.client()) for _ in range(3)]
        for number, client in enumerate((first, second), start=1):
            await client.send(part)
            await until(lambda number=number: len(port.book._large) == number, "a large body")
        await third.send(part)
        assert await first.is_cut()
        await second.send(b"x" * 79_999)
        assert await second.answer() == (200, b"99999 bytes")


async def test_a_connection_that_sends_requests_and_reads_no_answer_is_cut():
    async with port_with(LIMITS) as port, port.client() as client:
        tracemalloc.start()
        try:
            await client.send(request("GET", "/wait") * 10_000)
            assert await client.is_cut()
            assert tracemalloc.get_traced_memory()[1] < 10 * MIB
        finally:
            tracemalloc.stop()
        assert len(port.app.begun) <= 1
        port.app.release.set()
        assert (await port.get())[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00",
        b"FOO / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_http_are_refused_and_not_logged(caplog, data):
    async with port_with(LIMITS) as port, port.client() as client:
        await client.send(data)
        assert (await client.answer())[0] == 400
        assert await client.is_cut()
        assert port.app.begun == []
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


@pytest.mark.parametrize("connection", ["Connection: Upgrade", "Connection: keep-alive"])
async def test_an_offer_of_another_protocol_is_not_heard(caplog, connection):
    async with port_with(LIMITS) as port, port.client() as client:
        for _ in range(2):
            await client.send(request("POST", "/", "Upgrade: h2c", connection, body=b"hello"))
            assert await client.answer() == (200, b"5 bytes")
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


async def test_an_answer_that_is_not_read_ends():
    async with port_with(replace(LIMITS, stall_seconds=0.2)) as port, port.client() as client:
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(request("GET", "/much"))
        await until(lambda: port.app.begun, "the request to begin")
        await until(lambda: len(port.book) == 0, "the connection to end")


async def test_a_connection_lives_on_between_its_requests():
    limits = replace(LIMITS, head_seconds=0.1, body_seconds=0.1)
    async with port_with(limits) as port, port.client() as client:
        for _ in range(3):
            await client.send(request("POST", "/", body=b"hello"))
            assert await client.answer() == (200, b"5 bytes")
            await asyncio.sleep(0.2)
