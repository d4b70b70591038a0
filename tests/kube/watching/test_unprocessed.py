"""The age of bytes that arrived and are unprocessed: deadlines are judged up to then only."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from leases.kube import open_watch, reflector
from leases.kube.backoff import Backoff
from leases.kube.http_session import READ_BUFFER
from leases.kube.lease_client import LeaseClient
from leases.kube.open_watch import OpenWatch, Slices
from leases.wire.watch_decoding import Arrived
from tests.support.following import LIMIT, each
from tests.support.scripted_api import Connection, ScriptedServer, listing, modified, stream

OLD = 0.3  # seconds
LONG = "holder-" + "x" * 2000
MANY = 5 * READ_BUFFER // len(LONG)  # events: more than two readings hold


async def test_bytes_stay_unprocessed_until_the_last_event_of_them_is(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    lines = [modified("a", version=101 + number, holder=LONG) for number in range(MANY)]
    cluster.script("watch", stream(b"".join(lines), end="hang"))
    reported, unprocessed_seconds = 0, []
    async with client.watch("100", timeout_seconds=60) as readings:
        async for events in readings:
            while not reported and client.unprocessed_seconds() < OLD:
                await asyncio.sleep(0)
            reported += len(events)
            unprocessed_seconds.append(client.unprocessed_seconds())
            if reported == MANY:
                break
        assert len(unprocessed_seconds) > 2
        assert min(unprocessed_seconds) >= OLD


async def test_what_comes_after_a_silence_is_read_at_once_and_what_follows_together(
    cluster: ScriptedServer, client: LeaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_watch, "PACE", 0.5)
    read, waits, pace = asyncio.Event(), [], OpenWatch._pace

    async def noted(watch: OpenWatch) -> bool:
        waits.append(await pace(watch))
        return waits[-1]

    monkeypatch.setattr(OpenWatch, "_pace", noted)

    async def reply(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for version in (101, 102, 103):
            event = modified("a", version=version)
            await connection.send(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await read.wait()
        await connection.hang()

    cluster.script("watch", reply)
    async with client.watch("100", timeout_seconds=60) as readings:
        assert len(await anext(aiter(readings))) == 1
        assert not any(waits)
        read.set()
        assert len(await anext(aiter(readings))) == 2
        assert waits[-1]


@pytest.mark.parametrize("busy", ["the others", "the reader"])
async def test_a_reader_gives_way_for_its_own_work_alone(
    cluster: ScriptedServer, client: LeaseClient, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    gave_way, read, spent = [], asyncio.Event(), [0.0]
    monkeypatch.setattr(open_watch, "thread_time", lambda: spent[0])

    class Noted(Slices):
        async def end(self) -> None:
            gave_way.append(spent[0] - self._began > open_watch.SLICE)
            await super().end()

    monkeypatch.setattr(open_watch, "Slices", Noted)

    async def reply(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for version in (101, 102):
            event = modified("a", version=version)
            await connection.send(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await read.wait()
            spent[0] += busy == "the others"
        await connection.hang()

    cluster.script("watch", reply)
    async with client.watch("100", timeout_seconds=60) as readings:
        await anext(aiter(readings))
        spent[0] += busy == "the reader"
        second = asyncio.ensure_future(anext(aiter(readings)))
        await asyncio.sleep(0.05)
        read.set()
        assert len(await second) == 1
    assert any(gave_way) == (busy == "the reader")


async def test_nothing_is_unprocessed_while_nothing_comes(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", stream(modified("a", version=101), end="hang"))
    async with client.watch("100", timeout_seconds=60) as readings:
        await anext(aiter(readings))
        assert client.unprocessed_seconds() > 0
        more = asyncio.ensure_future(anext(aiter(readings)))
        async with asyncio.timeout(LIMIT):
            while client.unprocessed_seconds():
                await asyncio.sleep(0)
        more.cancel()
        await asyncio.gather(more, return_exceptions=True)


async def test_the_watch_is_read_while_its_events_are_followed_slowly(
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The API server cuts a watch that nobody reads, and then forgets its events."""
    monkeypatch.setattr(reflector, "TOO_SLOW", -1.0)
    lines = [modified("a", version=101 + number, holder=LONG) for number in range(20 * MANY)]
    sent = asyncio.Event()

    async def reply(connection: Connection) -> None:
        await stream(b"".join(lines), end="open")(connection)
        sent.set()
        await connection.hang()

    cluster.script("list", listing(version="100"))
    cluster.script("watch", reply)
    followed: list[str] = []
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        async for event in events:
            if isinstance(event, Arrived):
                followed += [one.resource_version for one in each(event)]
            if len(followed) > MANY:
                await sent.wait()
            if len(followed) == len(lines):
                break
    assert followed == [str(101 + number) for number in range(len(lines))]
