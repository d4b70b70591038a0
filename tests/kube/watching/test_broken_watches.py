"""A watch that ends, breaks or falls silent: resume where it stopped, list only after Gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re

import msgspec
import pytest

from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.lease_client import LeaseClient
from leases.kube.reflector import reflect
from leases.wire.watch_decoding import Connected, Disconnected, ReflectorEvent
from tests.kube.conftest import FAST
from tests.support.following import LIMIT, applied, follow, words_of
from tests.support.scripted_api import (
    GONE,
    Connection,
    End,
    Reply,
    ScriptedServer,
    answer,
    bookmark,
    event,
    lease,
    listing,
    modified,
    silence,
    status,
    stream,
)

A, B = modified("a", version=101), modified("b", version=102)


def versions(cluster: ScriptedServer) -> list[str]:
    return [watch.query["resourceVersion"] for watch in cluster.seen("watch")]


def once(asked: asyncio.Event) -> Reply:
    """A watch that brings its first event when this is set."""

    async def late_event(connection: Connection) -> None:
        await stream(end="cut")(connection)
        await asked.wait()
        await connection.send(f"{len(A):x}\r\n".encode() + A + b"\r\n")
        await connection.hang()

    return late_event


def details(seen: list[ReflectorEvent]) -> list[str]:
    return [event.detail for event in seen if isinstance(event, Disconnected)]


async def test_a_watch_that_ends_properly_goes_on_from_where_it_stopped_and_stays_connected(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("watch", stream(A), stream(B, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen) == ["Listed 0 start", "Connected", "Applied a@101", "Applied b@102"]
    assert versions(cluster) == ["100", "101"]


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_connection_lost_in_the_middle_of_an_event_resumes_after_the_last_whole_one(
    cluster: ScriptedServer,
    client: LeaseClient,
    backoff: Backoff,
    end: End,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cluster.script("watch", stream(A, B[:40], end=end), stream(B, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen) == [
        "Listed 0 start",
        "Connected",
        "Applied a@101",
        "Disconnected",
        "Connected",
        "Applied b@102",
    ]
    assert versions(cluster) == ["100", "101"]
    assert "broke" in details(seen)[0]
    broke, back = [one for one in caplog.messages if one.startswith("watch")]
    assert broke.startswith("watch broke at resourceVersion 101: ")
    assert re.fullmatch(r"watch is back at resourceVersion 101, after \d+\.\d s", back)


@pytest.mark.parametrize("cut", range(1, len(A + B), 7))
async def test_events_arrive_whole_wherever_the_chunks_are_cut(
    cluster: ScriptedServer, client: LeaseClient, cut: int
) -> None:
    both = A + B
    cluster.script("watch", stream(both[:cut], both[cut:]))
    async with client.watch("100", timeout_seconds=300) as events:
        seen = [event async for reading in events for event in reading]
    assert words_of(list(seen)) == ["Applied a@101", "Applied b@102"]


async def test_a_watch_may_come_byte_by_byte(cluster: ScriptedServer, client: LeaseClient) -> None:
    cluster.script("watch", stream(*(bytes([byte]) for byte in A + B)))
    async with client.watch("100", timeout_seconds=300) as events:
        seen = [event async for reading in events for event in reading]
    assert words_of(list(seen)) == ["Applied a@101", "Applied b@102"]


async def test_a_bookmark_moves_the_version_from_which_a_broken_watch_resumes(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("watch", stream(bookmark(140), end="cut"), stream(A, end="hang"))
    cluster.script("probe", listing(version="150"))
    await follow(client, backoff, until=applied("a"))
    assert versions(cluster) == ["100", "140"]


@pytest.mark.parametrize("gone", [answer(410, GONE), stream(event("ERROR", GONE))])
async def test_gone_as_an_answer_or_as_an_event_lists_again(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, gone: Reply
) -> None:
    cluster.script("list", listing(), listing(lease("a", version=400), version="400"))
    cluster.script("watch", gone, gone, stream(modified("b", version=401), end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen)[-4:] == ["Disconnected", "Listed 1 gone", "Connected", "Applied b@401"]
    assert versions(cluster) == ["100", "100", "400"]
    assert details(seen) == [
        "too old resource version: 100 (900). Leaseboard lists all Leases again."
    ]


async def test_events_still_available_after_a_410_come_before_the_list(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(), listing(lease("a", version=400), version="400"))
    past = stream(modified("a", version=300, holder="x"), modified("a", version=400), end="hang")
    cluster.script("watch", answer(410, GONE), past, stream(B, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen)[1:] == [
        "Disconnected",
        "Applied a@300",
        "Applied a@400",
        "Listed 1 gone",
        "Connected",
        "Applied b@102",
    ]


async def test_a_restarted_cluster_with_lower_versions_is_listed_afresh(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(), listing(version="7"))
    cluster.script("probe", listing(version="7"))
    cluster.script("watch", stream(A, end="cut"), stream(modified("b", version=8), end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen)[-3:] == ["Listed 0 gone", "Connected", "Applied b@8"]
    assert versions(cluster) == ["100", "7"]


async def test_a_silent_watch_from_the_future_is_found_out_and_listed_afresh(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(version="900"), listing(version="7"))
    cluster.script("probe", listing(version="7"))
    cluster.script("watch", stream(end="hang"), stream(modified("b", version=8), end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert versions(cluster) == ["900", "7"]
    assert "went back from resourceVersion 900 to 7" in details(seen)[0]


async def test_a_quiet_watch_of_a_living_cluster_stays_connected(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    asked_thrice = asyncio.Event()

    async def reply(connection: Connection) -> None:
        if len(cluster.seen("probe")) == 3:
            asked_thrice.set()
        await listing(version="200")(connection)

    async def late_event(connection: Connection) -> None:
        await stream(end="cut")(connection)
        await asked_thrice.wait()
        line = A
        await connection.send(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        await connection.hang()

    cluster.script("probe", reply)
    cluster.script("watch", late_event)
    seen = await follow(client, backoff, until=applied("a"))
    assert words_of(seen) == ["Listed 0 start", "Connected", "Applied a@101"]


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, probe=0.2)])
async def test_a_half_open_connection_is_noticed_by_asking(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    async def silent_until_noticed(connection: Connection) -> None:
        noticed = client.limits.probe > 1
        await (listing(version="200") if noticed else silence())(connection)

    def until(seen: list[ReflectorEvent]) -> bool:
        if details(seen):
            client._session.limits = FAST
        return applied("b")(seen)

    cluster.script("probe", silent_until_noticed)
    cluster.script("watch", stream(A, end="hang"), stream(B, end="hang"))
    seen = await follow(client, backoff, until=until)
    assert words_of(seen)[2:] == ["Applied a@101", "Disconnected", "Connected", "Applied b@102"]
    assert "did not answer within 0.2 s" in details(seen)[0]


@pytest.mark.parametrize(
    ("limits", "idle"),
    [
        (msgspec.structs.replace(FAST, quiet=3600.0), True),
        (msgspec.structs.replace(FAST, idle=3600.0), False),
    ],
)
async def test_a_watch_of_leases_that_cannot_expire_has_a_limit_of_its_own(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, idle: bool
) -> None:
    asked = asyncio.Event()

    async def reply(connection: Connection) -> None:
        asked.set()
        await listing(version="200")(connection)

    cluster.script("probe", reply)
    cluster.script("watch", once(asked))
    await follow(client, backoff, until=applied("a"), idle=lambda: idle)


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, slack=-600)])
async def test_a_watch_silent_beyond_its_own_timeout_is_dead_even_if_the_cluster_lives(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("watch", stream(end="hang"), stream(B, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen) == [
        "Listed 0 start",
        "Connected",
        "Disconnected",
        "Connected",
        "Applied b@102",
    ]


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, bookmark=0.01)])
async def test_a_watch_that_misses_what_others_write_without_even_a_bookmark_is_opened_anew(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("probe", listing(version="130"))
    cluster.script("watch", stream(end="hang"), stream(B, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen) == ["Listed 0 start", "Connected", "Applied b@102"]
    assert versions(cluster) == ["100", "100"]


async def test_a_busy_cluster_that_answers_no_questions_is_not_taken_for_dead(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    asked = asyncio.Event()

    async def too_busy(connection: Connection) -> None:
        await answer(429, status(429, "TooManyRequests"))(connection)
        asked.set()

    cluster.script("probe", too_busy)
    cluster.script("watch", once(asked))
    seen = await follow(client, backoff, until=applied("a"))
    assert words_of(seen) == ["Listed 0 start", "Connected", "Applied a@101"]


async def test_garbage_in_a_watch_breaks_it_and_it_resumes(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("watch", stream(A, b"<html>\n"), stream(B, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    assert words_of(seen)[2:] == ["Applied a@101", "Disconnected", "Connected", "Applied b@102"]
    assert "no Lease API answer" in details(seen)[0]
    assert versions(cluster) == ["100", "101"]


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, short=5.0)])
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_a_pause(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", stream(), stream(), stream(), stream(A, end="hang"))
    asked: list[bool] = []

    def jitter() -> float:
        asked.append(True)
        return 0.0

    patient = Backoff(first=0.01, limit=0.05, jitter=jitter)
    seen = await follow(client, patient, until=applied("a"))
    assert len(asked) == 3
    assert details(seen) == [f"{cluster.url} ended the watch as soon as it was open."] * 3


async def test_a_cluster_that_stops_and_starts_is_followed_again(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    later = ScriptedServer()
    later.script("watch", stream(B, end="hang"))

    def until(seen: list[ReflectorEvent]) -> bool:
        return isinstance(seen[-1], Connected)

    async with ScriptedServer().running() as first:
        moving = await connect(parse_source(f"url:{first.url}"), kubeconfig=None, limits=FAST)
        later.port = first.port
        await follow(moving, backoff, until=until)
    seen = await follow(moving, backoff, until=lambda seen: isinstance(seen[-1], Disconnected))
    assert details(seen) == [
        f"Cannot reach {later.url}: connection refused. Check that the API server runs."
    ]
    async with later.running():
        assert words_of(await follow(moving, backoff, until=applied("b")))[-1] == "Applied b@102"
        await moving.close()


async def test_a_silent_cluster_is_asked_at_once_whether_it_is_alive(
    cluster: ScriptedServer, backoff: Backoff
) -> None:
    limits = msgspec.structs.replace(FAST, quiet=60, idle=60)
    client = await connect(parse_source(f"url:{cluster.url}"), kubeconfig=None, limits=limits)
    cluster.script("list", listing(version="100"))
    cluster.script("watch", stream(end="hang"))
    refused: list[RuntimeError] = []

    def look_again() -> None:
        try:
            connected.look()
        except RuntimeError as error:
            refused.append(error)

    async with contextlib.aclosing(reflect(client, since=None, backoff=backoff)) as events:
        connected = await anext(one async for one in events if isinstance(one, Connected))
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        assert connected.silent_seconds() >= 0.1
        asked = len(cluster.seen("probe"))
        connected.look()
        asyncio.get_running_loop().call_soon(look_again)  # while the first is on its way
        async with asyncio.timeout(LIMIT):
            while connected.silent_seconds() >= 0.1:
                await asyncio.sleep(0.005)
        assert len(cluster.seen("probe")) == asked + 1
        assert not refused
        cluster.script("probe", silence())
        await asyncio.sleep(0.1)
        connected.look()
        await asyncio.sleep(0.1)
        assert connected.silent_seconds() >= 0.1  # nobody has answered
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await client.close()


async def test_a_watch_is_read_while_the_cluster_is_asked(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    asked = asyncio.Event()

    async def never(connection: Connection) -> None:
        asked.set()
        await connection.hang()

    cluster.script("list", listing(version="100"))
    cluster.script("watch", once(asked))
    cluster.script("probe", never)
    seen = await follow(client, backoff, until=applied("a"))
    assert details(seen) == []


async def test_a_watch_that_follows_another_shows_no_life_before_its_first_data(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("watch", stream(A, end="hang"))
    async with client.watch("100", timeout_seconds=60) as readings:
        await anext(aiter(readings))
        began = client.silent_seconds()
    await asyncio.sleep(0.1)
    async with client.open_watch("101", timeout_seconds=60):
        assert client.silent_seconds() >= began + 0.1
