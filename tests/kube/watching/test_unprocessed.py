"""The age of bytes that arrived and are unprocessed: deadlines are judged up to then only."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leases.apiserver.http.port import CERTIFICATE, certificate_for, tls_context
from leases.kube import open_watch, reflector
from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.http_session import READ_BUFFER, Timeouts
from leases.kube.lease_client import LeaseClient
from leases.kube.open_watch import LONGEST_PACE, PACE, OpenWatch, Slices, pace
from leases.kube.reflector import Ahead
from leases.wire.watch_decoding import Arrived, Connected, Disconnected, ReflectorEvent
from tests.kube.conftest import FAST
from tests.support.following import LIMIT, each
from tests.support.scripted_api import (
    Connection,
    End,
    Reply,
    ScriptedServer,
    answer,
    lease,
    listing,
    modified,
    stream,
)

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


async def test_what_tls_held_back_while_nobody_read_stays_unprocessed(
    tmp_path: Path, limits: Timeouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate_for(tmp_path, "127.0.0.1", now=datetime.now(UTC))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / CERTIFICATE))
    lines = [modified("a", version=101 + number, holder=LONG) for number in range(MANY)]
    full = 2 * READ_BUFFER // len(LONG) + 1  # lines; then aiohttp reads no further
    paused, sent = asyncio.Event(), asyncio.Event()

    async def reply(connection: Connection) -> None:
        await stream(b"".join(lines[:full]), end="open")(connection)
        await paused.wait()
        rest = b"".join(lines[full : full + 50])
        await connection.send(f"{len(rest):x}\r\n".encode() + rest + b"\r\n")
        sent.set()
        await connection.hang()

    async with ScriptedServer(tls_context(tmp_path)).running() as server:
        server.script("watch", reply)
        client = await connect(parse_source(f"url:{server.url}"), kubeconfig=None, limits=limits)
        async with client.open_watch("100", timeout_seconds=60) as watch:
            async with asyncio.timeout(LIMIT):
                while watch._body.arrived <= 2 * READ_BUFFER:
                    await asyncio.sleep(0.01)
                paused.set()
                await sent.wait()
            await asyncio.sleep(OLD)
            assert not watch._arriving.poll(0)  # the kernel holds nothing
            told, ages = 0, []
            async for some in watch.lines():
                told += len(some)
                ages.append(watch.unprocessed_seconds())
                if told == full + 50:
                    break
        await client.close()
    assert len(ages) > 1
    assert min(ages) >= OLD


async def test_what_comes_after_a_silence_is_read_at_once_and_what_follows_together(
    cluster: ScriptedServer, client: LeaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(open_watch, "pace", lambda: asked.append(0.5) or 0.5)
    read, waits, paced = asyncio.Event(), [], OpenWatch._pace

    async def noted(watch: OpenWatch) -> bool:
        waits.append(await paced(watch))
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
        assert asked


async def test_lines_in_hand_are_unprocessed_before_the_first_event_of_them_is_told(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", stream(modified("a", version=101), end="hang"))
    async with client.open_watch("100", timeout_seconds=60) as watch:
        lines = watch.lines()
        await anext(lines)
        await asyncio.sleep(0.01)
        assert watch.unprocessed_seconds() > 0
        await lines.aclose()


async def test_many_watches_are_read_less_often_as_long_as_they_are_open(
    cluster: ScriptedServer, client: LeaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_watch, "_being_read", set())
    monkeypatch.setattr(open_watch, "READS_PER_SECOND", 10)
    cluster.script("watch", stream(modified("a", version=101), end="hang"))
    cluster.script("watch", stream(modified("a", version=101), end="hang"))
    async with client.watch("100", timeout_seconds=60) as one:
        await anext(aiter(one))
        assert pace() == 0.1
        async with client.watch("100", timeout_seconds=60) as other:
            await anext(aiter(other))
            assert pace() == 0.2
            monkeypatch.setattr(open_watch, "READS_PER_SECOND", 1)
            assert pace() == LONGEST_PACE
            monkeypatch.setattr(open_watch, "READS_PER_SECOND", 10)
        assert pace() == 0.1
    assert pace() == PACE


@pytest.mark.parametrize("busy", ["the others", "the reader"])
async def test_a_reader_gives_way_for_its_own_work_alone(
    cluster: ScriptedServer, client: LeaseClient, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    gave_way, read, spent = [], asyncio.Event(), [0.0]
    monkeypatch.setattr(open_watch, "thread_time", lambda: spent[0])

    class Noted(Slices):
        def begin(self) -> None:
            super().begin()
            self._half = 0.0

        def is_over(self) -> bool:
            gave_way.append(super().is_over())
            return gave_way[-1]

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


def test_a_slice_is_over_after_one_long_step() -> None:
    assert Slices(0.0).is_over()
    assert not Slices(3600.0).is_over()


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
        async for versions in _arrivals(events):
            followed += versions
            if len(followed) > MANY:
                await sent.wait()
            if len(followed) == len(lines):
                break
    assert followed == [str(101 + number) for number in range(len(lines))]


async def test_a_watch_that_is_behind_is_read_before_its_events_are_followed(
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "TOO_SLOW", -1.0)
    lines = [modified("a", version=101 + number, holder=LONG) for number in range(20 * MANY)]
    followed: list[str] = []
    followed_when_sent: list[int] = []

    async def reply(connection: Connection) -> None:
        await stream(b"".join(lines), end="open")(connection)
        followed_when_sent.append(len(followed))
        await connection.hang()

    cluster.script("list", listing(version="100"))
    cluster.script("watch", reply)
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        async for versions in _arrivals(events):
            followed += versions
            if len(followed) == len(lines):
                break
    assert followed_when_sent[0] < len(lines) / 4


class Delays(Backoff):
    """Notes its delays."""

    def __init__(self) -> None:
        super().__init__(first=0.01, jitter=lambda: 0.0)
        self.noted: list[float] = []

    def delay(self, **reasons: Any) -> float:
        self.noted.append(super().delay(**reasons))
        return self.noted[-1]


def in_two(lines: list[bytes], end: End) -> Reply:
    """A watch whose lines are read in two parts, the second of them ahead."""

    async def reply(connection: Connection) -> None:
        half = len(lines) // 2
        await stream(b"".join(lines[:half]), end="open")(connection)
        await asyncio.sleep(OLD)
        rest = b"".join(lines[half:]) + b"{"
        await connection.send(f"{len(rest):x}\r\n".encode() + rest + b"\r\n")
        await asyncio.sleep(OLD)
        if end == "clean":
            await connection.send(b"0\r\n\r\n")
        elif end == "reset":
            connection.reset()

    return reply


@pytest.mark.parametrize("end", ["clean", "cut", "reset"])
async def test_a_watch_that_ends_while_it_is_read_ahead_is_opened_again_where_it_ended(
    end: End,
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the time all is followed the server may have forgotten what came next."""
    delays = Delays()
    monkeypatch.setattr(reflector, "TOO_SLOW", -1.0)
    monkeypatch.setattr(reflector, "Backoff", lambda: delays)
    lines = [modified("a", version=101 + number) for number in range(500)]
    watches: list[OpenWatch] = []
    read_lines = OpenWatch.lines
    monkeypatch.setattr(OpenWatch, "lines", lambda one: read_lines(watches.append(one) or one))
    resumed = asyncio.Event()

    async def last(connection: Connection) -> None:
        resumed.set()
        await stream(*lines[450:], end="hang")(connection)

    cluster.script("list", listing(version="100"))
    second = stream(b"".join(lines[400:450]), end="cut")
    cluster.script("watch", in_two(lines[:400], end), answer(503), second, last)
    followed: list[str] = []
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        async for event in events:
            assert not isinstance(event, Disconnected)
            if isinstance(event, Arrived):
                followed += [one.resource_version for one in each(event)]
                if len(followed) == len(lines):
                    break
                await resumed.wait()
    assert followed == [str(101 + number) for number in range(len(lines))]
    opened_at = [one.query["resourceVersion"] for one in cluster.seen("watch")]
    assert opened_at == ["100", "500", "500", "550"]
    assert delays.noted == [0.01, 0.02, 0.01]
    assert [one._body._transport.is_closing() for one in watches] == [True] * 3


async def until_broken(
    client: LeaseClient, backoff: Backoff, known: Callable[[], Awaitable[object]]
) -> list[str]:
    """The versions followed before the watch is told as broken. The first waits for `known`."""
    followed: list[str] = []
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        async for event in events:
            if isinstance(event, Disconnected):
                break
            if isinstance(event, Arrived):
                if not followed:
                    await known()
                followed += [one.resource_version for one in each(event)]
    return followed


@pytest.mark.parametrize(("code", "asked"), [(401, 3), (403, 2), (410, 2)])
async def test_a_watch_that_may_not_be_opened_again_is_not_asked_for_until_all_is_followed(
    code: int,
    asked: int,  # a 401 once more: the credentials may be new
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "TOO_SLOW", -1.0)
    monkeypatch.setattr(reflector, "Backoff", Delays)
    lines = [modified("a", version=101 + number) for number in range(400)]
    cluster.script("list", listing(version="100"))
    refused = asyncio.Event()

    async def refuse(connection: Connection) -> None:
        await answer(code)(connection)
        refused.set()

    async def refused_for_long() -> None:
        await refused.wait()
        await asyncio.sleep(OLD)  # in which it would be asked many times

    cluster.script("watch", in_two(lines, "cut"), refuse)
    followed = await until_broken(client, backoff, refused_for_long)
    assert followed == [str(101 + number) for number in range(len(lines))]
    assert len(cluster.seen("watch")) == asked


@pytest.mark.parametrize("many", [False, True])
async def test_a_watch_that_broke_is_broken_as_soon_as_all_is_followed(
    many: bool,
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not after the delay before the next try to open it: meanwhile nobody knows anything."""
    monkeypatch.setattr(reflector, "TOO_SLOW", -1.0)
    cut = asyncio.Event()

    class Long(Backoff):
        def delay(self, **reasons: Any) -> float:
            cut.set()
            return 10 * LIMIT

    monkeypatch.setattr(reflector, "Backoff", Long)
    lines = [modified("a", version=101 + number) for number in range(400)]
    cluster.script("list", listing(version="100"))
    cluster.script("watch", in_two(lines, "cut") if many else stream(lines[0], end="cut"))
    followed = await until_broken(client, backoff, cut.wait)
    assert len(followed) == (400 if many else 1)


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, bookmark=0.01)])
async def test_a_silent_watch_is_closed_before_another_is_opened_in_its_place(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "Backoff", Delays)
    watches: list[OpenWatch] = []
    read_lines = OpenWatch.lines
    monkeypatch.setattr(OpenWatch, "lines", lambda one: read_lines(watches.append(one) or one))
    closed: list[bool] = []
    resumed = asyncio.Event()

    async def another(connection: Connection) -> None:
        closed.append(watches[0]._body._transport.is_closing())
        resumed.set()
        await connection.hang()

    async def last_page(connection: Connection) -> None:
        await resumed.wait()
        await listing(lease("b", version=95))(connection)

    cluster.script("list", listing(lease("a", version=90), next_page="more"))
    cluster.script("page", last_page)
    cluster.script("probe", listing(version="130"))
    cluster.script("watch", stream(end="hang"), another)
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        await _connected(events)
    assert closed == [True]


async def _arrivals(events: AsyncGenerator[ReflectorEvent, None]) -> AsyncIterator[list[str]]:
    """The versions in each batch of events."""
    async for event in events:
        if isinstance(event, Arrived):
            yield [one.resource_version for one in each(event)]


async def _connected(events: AsyncGenerator[ReflectorEvent, None]) -> Callable[[], float]:
    """What the stream says of unprocessed data, once it is connected."""
    async for event in events:
        if isinstance(event, Connected):
            return event.unprocessed_seconds
    raise AssertionError


async def _all_processed(
    events: AsyncGenerator[ReflectorEvent, None], unprocessed_seconds: Callable[[], float]
) -> None:
    """Follow until nothing waits."""
    more = asyncio.ensure_future(anext(events))
    while unprocessed_seconds():
        await asyncio.sleep(0.01)
    more.cancel()
    await asyncio.gather(more, return_exceptions=True)


async def test_what_was_read_during_the_list_is_unprocessed_until_it_is_followed(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=90), next_page="more"))
    cluster.script("page", listing(lease("b", version=95)))
    cluster.script("watch", stream(modified("a", version=101), end="hang"))
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        unprocessed_seconds = await _connected(events)
        while client.unprocessed_seconds() or unprocessed_seconds() < OLD:
            await asyncio.sleep(0.01)  # it is read, and nobody follows it
        assert isinstance(await anext(events), Arrived)
        await _all_processed(events, unprocessed_seconds)


async def test_the_rest_of_a_reading_is_unprocessed_though_nothing_is_read_ahead(
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[AsyncGenerator[list[bytes], None]] = []
    lines = OpenWatch.lines
    monkeypatch.setattr(OpenWatch, "lines", lambda one: opened.append(lines(one)) or opened[-1])
    several = b"".join(modified("a", version=101 + number) for number in range(200))
    cluster.script("list", listing(version="100"))
    cluster.script("watch", stream(several, end="hang"))
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        unprocessed_seconds = await _connected(events)
        await anext(events)
        await asyncio.sleep(OLD)
        assert unprocessed_seconds() >= OLD
    assert [one.ag_frame for one in opened] == [None]  # closed with the stream


async def test_what_comes_meanwhile_makes_the_rest_of_a_reading_no_younger(
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "TOO_SLOW", -1.0)
    ahead: list[Ahead] = []
    read = Ahead.read
    monkeypatch.setattr(Ahead, "read", lambda one: (ahead.append(one), read(one)))
    several = b"".join(modified("a", version=101 + number) for number in range(200))
    waited = asyncio.Event()

    async def reply(connection: Connection) -> None:
        await stream(several, end="open")(connection)
        await waited.wait()
        await connection.send(f"{len(last):x}\r\n".encode() + last + b"\r\n")
        await connection.hang()

    last = modified("a", version=400)
    cluster.script("list", listing(version="100"))
    cluster.script("watch", reply)
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflector.reflect(client, since=None, backoff=backoff)) as events,
    ):
        unprocessed_seconds = await _connected(events)
        first = await anext(events)
        began = time.monotonic()
        assert isinstance(first, Arrived)
        assert len(first.events) < 200
        await asyncio.sleep(OLD)
        waited.set()
        while not ahead[0]._kept or client.unprocessed_seconds() >= OLD:
            await asyncio.sleep(0.01)
        assert unprocessed_seconds() >= time.monotonic() - began - 0.001
        version = ""
        while version != "400":
            event = await anext(events)
            assert isinstance(event, Arrived)
            version = event.events[-1].resource_version
        await _all_processed(events, unprocessed_seconds)
        assert not ahead[0]._bytes  # there is room for as much again
