"""List, then watch: what a reflector reports of a healthy cluster and after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from typing import Any

import msgspec
import pytest

from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.http_session import Timeouts
from leases.kube.lease_client import LeaseClient
from leases.kube.reflector import REPLAY_TRIES, reflect
from leases.wire import watch_decoding
from leases.wire.renewal_lines import Reader
from leases.wire.watch_decoding import Applied, Connected, Listed
from tests.kube.conftest import FAST
from tests.support.following import LIMIT, applied, follow, words_of
from tests.support.scripted_api import (
    GONE,
    Connection,
    ScriptedServer,
    answer,
    bookmark,
    event,
    lease,
    listing,
    modified,
    stream,
)


async def test_a_cluster_is_listed_then_connected_then_followed(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=90), lease("b", version=95)))
    gone = event("DELETED", lease("b", version=101))
    cluster.script("watch", stream(gone, bookmark(104), modified("a", version=105), end="hang"))
    seen = await follow(client, backoff, until=applied("a"))
    assert words_of(seen) == [
        "Listed 2 start",
        "Connected",
        "Deleted b@101",
        "Bookmark 104",
        "Applied a@105",
    ]


async def test_a_list_takes_no_memory_while_it_is_watched(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=90)))
    cluster.script("watch", stream(bookmark(101), end="hang"))
    listed: list[Listed] = []
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflect(client, since=None, backoff=backoff)) as events,
    ):
        async for one in events:
            if isinstance(one, Listed):
                listed.append(one)
            elif isinstance(one, Connected):
                break
        references = sys.getrefcount(listed[0])
    assert references == len(["of the list here", "the argument"])


async def test_the_watch_begins_at_the_list_and_asks_for_bookmarks_and_an_end(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("watch", stream(modified("a", version=105), end="hang"))
    await follow(client, backoff, until=applied("a"))
    (request,) = cluster.seen("watch")
    assert request.query["resourceVersion"] == "100"
    assert request.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(request.query["timeoutSeconds"]) <= 600


async def test_pages_are_asked_for_with_no_resource_version_and_put_together(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=90), next_page="two"))
    cluster.script("page", listing(lease("b", version=95)))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 3)
    assert words_of(seen) == ["Page 1", "Listed 1 start", "Connected"]
    first, second = cluster.seen("list")[0], cluster.seen("page")[0]
    assert first.query == {"limit": "500"}
    assert second.query == {"limit": "500", "continue": "two"}


async def test_lists_of_many_clusters_let_the_loop_turn_between_their_parts(
    cluster: ScriptedServer, backoff: Backoff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a probe would wait for a part of each cluster at each of its own steps."""
    many = [lease(f"a-{number}", version=number + 1) for number in range(400)]
    cluster.script("list", listing(*many, next_page="two"))
    cluster.script("page", listing(lease("b", version=500)))
    turn, parts, decoded, read = 0, Counter[int](), Counter[int](), watch_decoding.read_page

    def read_page(body: bytes) -> watch_decoding.LeaseListPage:
        decoded[turn] += 1
        return read(body)

    monkeypatch.setattr(watch_decoding, "read_page", read_page)

    async def turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def list_one() -> None:
        source = parse_source(f"url:{cluster.url}")
        client = await connect(source, kubeconfig=None, limits=FAST)
        async with contextlib.aclosing(reflect(client, since=None, backoff=backoff)) as events:
            async for one in events:
                parts[turn] += 1
                if isinstance(one, Listed):
                    break
        await client.close()

    counting = asyncio.create_task(turns())
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as clusters:
        for _ in range(10):
            clusters.create_task(list_one())
    counting.cancel()
    assert sum(parts.values()) == 10 * 11
    # One ended its part, and one that had not waited began.
    assert max(parts.values()) <= 2
    assert max(decoded.values()) <= 2


async def test_a_continue_token_that_runs_out_starts_the_list_anew_once(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script(
        "list",
        listing(lease("a", version=90), next_page="old"),
        listing(lease("b", version=95), version="120"),
    )
    cluster.script("page", answer(410, GONE))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 3)
    assert words_of(seen) == ["Page 1", "Listed 1 start", "Connected"]
    assert cluster.seen("watch")[-1].query["resourceVersion"] == "120"


async def test_events_during_a_list_come_after_it(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    watched = asyncio.Event()

    async def watch(connection: Connection) -> None:
        watched.set()
        await stream(modified("a", version=101), end="hang")(connection)

    async def last_page(connection: Connection) -> None:
        await watched.wait()
        await listing(lease("b", version=95))(connection)

    cluster.script("list", listing(lease("a", version=90), next_page="two"))
    cluster.script("page", last_page)
    cluster.script("watch", watch)
    seen = await follow(client, backoff, until=applied("a"))
    assert words_of(seen) == ["Page 1", "Listed 1 start", "Connected", "Applied a@101"]
    assert [watch.query["resourceVersion"] for watch in cluster.seen("watch")] == ["100"]


async def test_a_watch_that_ends_during_the_list_is_opened_again_after_it(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    ended = asyncio.Event()

    async def ends_at_once(connection: Connection) -> None:
        await stream(end="clean")(connection)
        ended.set()

    async def late(connection: Connection) -> None:
        await ended.wait()
        await listing(lease("b", version=95))(connection)

    cluster.script("list", listing(lease("a", version=90), next_page="more"))
    cluster.script("page", late)
    cluster.script("watch", ends_at_once, stream(modified("c", version=101), end="hang"))
    seen = await follow(client, backoff, until=applied("c"))
    assert words_of(seen)[-1] == "Applied c@101"


async def test_the_watch_of_a_list_is_open_before_missed_events_are_replayed(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    """A replay may take so long that the list's version is too old to watch from."""
    replayed = stream(modified("a", version=95), modified("a", version=100), end="hang")
    cluster.script("list", listing(lease("a", version=90), next_page="more"))
    cluster.script("page", listing(lease("b", version=95)))
    cluster.script("watch", stream(end="hang"), replayed)
    seen = await follow(
        client, backoff, until=lambda seen: "Connected" in words_of(seen), since="90"
    )
    assert [one.query["resourceVersion"] for one in cluster.seen("watch")] == ["100", "90"]
    assert words_of(seen)[:2] == ["Replayed Applied a@95", "Replayed Applied a@100"]


async def test_after_a_replay_the_watch_of_the_list_is_the_newest(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    """It says how long data waited, and it asks a silent cluster whether it is alive."""
    cluster.script("list", listing(lease("a", version=90), next_page="more"))
    cluster.script("page", listing(lease("b", version=95)))
    replayed = stream(modified("a", version=100), end="hang")
    cluster.script("watch", stream(end="hang"), replayed)
    async with (
        asyncio.timeout(LIMIT),
        contextlib.aclosing(reflect(client, since="90", backoff=backoff)) as events,
    ):
        async for event in events:
            if isinstance(event, Connected):
                break
        assert client._watched is not None
        assert not client._watched._body._transport.is_closing()


async def test_after_a_restart_the_missed_events_are_replayed_before_the_list(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=100), version="100"))
    past = stream(
        modified("a", version=91, holder="x"),
        bookmark(95),
        event("DELETED", lease("b", version=97)),
        modified("a", version=100),
        modified("a", version=103),
        end="hang",
    )
    cluster.script("watch", past, stream(modified("a", version=103), end="hang"))
    seen = await follow(client, backoff, until=applied("a"), since="90")
    assert words_of(seen) == [
        "Replayed Applied a@91",
        "Replayed Deleted b@97",
        "Replayed Applied a@100",
        "Listed 1 start",
        "Connected",
        "Applied a@103",
    ]
    assert [watch.query["resourceVersion"] for watch in cluster.seen("watch")] == ["90", "100"]


@pytest.mark.parametrize("end", ["cut", "clean"])
async def test_a_replay_that_ends_early_goes_on_where_it_was(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff, end: str
) -> None:
    cluster.script("list", listing(lease("a", version=100), version="100"))
    cut = stream(modified("a", version=91, holder="x"), modified("a", version=93), end=end)
    rest = stream(modified("a", version=95, holder="y"), modified("a", version=100), end="hang")
    cluster.script("watch", cut, rest, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 6, since="90")
    assert words_of(seen) == [
        "Replayed Applied a@91",
        "Replayed Applied a@93",
        "Replayed Applied a@95",
        "Replayed Applied a@100",
        "Listed 1 start",
        "Connected",
    ]
    assert isinstance(seen[4], Listed)
    assert seen[4].age > 0  # it came before what was replayed
    versions = [watch.query["resourceVersion"] for watch in cluster.seen("watch")]
    assert versions == ["90", "93", "100"]


async def test_a_replay_that_is_cut_again_and_again_is_given_up(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=100), version="100"))
    cut = stream(end="reset")
    cluster.script("watch", *[cut] * REPLAY_TRIES, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 2, since="90")
    assert words_of(seen) == ["Listed 1 start", "Connected"]


async def test_a_replay_goes_on_as_long_as_each_try_brings_an_event(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=100), version="100"))
    pieces = [stream(modified("a", version=version), end="cut") for version in range(91, 101)]
    cluster.script("watch", *pieces, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 12, since="90")
    assert words_of(seen)[:10] == [f"Replayed Applied a@{version}" for version in range(91, 101)]


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, replay=1.0)])
async def test_a_silence_in_a_replay_is_looked_at_again(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=100), version="100"))
    silent = stream(modified("a", version=91), end="hang")
    rest = stream(modified("a", version=100), end="hang")
    cluster.script("watch", silent, rest, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 4, since="90")
    assert words_of(seen)[:2] == ["Replayed Applied a@91", "Replayed Applied a@100"]


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, replay=1.0)])
async def test_a_replay_ends_when_the_backlog_does_though_nothing_reached_the_lists_version(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    past = stream(modified("a", version=91), end="hang")
    cluster.script("watch", past, stream(end="hang"), stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 3, since="90")
    assert words_of(seen) == ["Replayed Applied a@91", "Listed 0 start", "Connected"]


async def test_a_bookmark_of_the_lists_version_ends_a_replay(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    past = stream(modified("a", version=91), bookmark(100), end="hang")
    cluster.script("watch", past, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 3, since="90")
    assert words_of(seen) == ["Replayed Applied a@91", "Listed 0 start", "Connected"]
    lasts = int(cluster.seen("watch")[0].query["timeoutSeconds"])
    assert lasts - 2 < Timeouts().replay  # the API server's bookmark comes first


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, replay=Timeouts().replay)])
async def test_a_backlog_that_comes_late_is_replayed(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    async def late(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await asyncio.sleep(1.5)
        line = modified("a", version=100)
        await connection.send(f"{len(line):x}\r\n".encode() + line + b"\r\n0\r\n\r\n")

    cluster.script("list", listing(lease("a", version=100), version="100"))
    cluster.script("watch", late, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 3, since="90")
    assert words_of(seen) == ["Replayed Applied a@100", "Listed 1 start", "Connected"]


@pytest.mark.parametrize("limits", [msgspec.structs.replace(FAST, replay=0.3)])
async def test_a_busy_process_does_not_take_its_own_silence_for_the_end_of_a_backlog(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    async def busy(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await asyncio.sleep(0.1)
        line = modified("a", version=100)
        await connection.send(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        time.sleep(0.5)  # noqa: ASYNC251 - it holds up the client, too
        await connection.hang()

    cluster.script("list", listing(lease("a", version=100), version="100"))
    rest = stream(modified("a", version=100), end="hang")
    cluster.script("watch", busy, rest, stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 3, since="90")
    assert words_of(seen) == ["Replayed Applied a@100", "Listed 1 start", "Connected"]


def renewal(version: int) -> bytes:
    """A line whose layout the reader knows, as the API server writes it."""
    content = lease("a", version=version)
    time = f"2026-11-20T12:00:{version - 90:02}"
    content["metadata"]["managedFields"] = [{"time": f"{time}Z", "fieldsV1": {"f:spec": {}}}]
    content["spec"]["renewTime"] = f"{time}.000000Z"
    return event("MODIFIED", content)


async def test_a_replay_does_not_decode_renewals_that_are_known(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("list", listing(lease("a", version=100), version="100"))
    lines = [renewal(version) for version in (91, 95, 100)]
    cluster.script("watch", stream(*lines, end="hang"), stream(end="hang"))
    read = Reader(()).read(lines[0].rstrip())
    assert isinstance(read, Applied)
    known = {read.fingerprint}
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 5, since="90", known=known)
    words = ["Replayed Renewed"] * 3
    assert words_of(seen) == [*words, "Listed 1 start", "Connected"]


async def test_after_a_list_the_watch_may_report_the_past_since_it_was_asked_for(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    async def slow(connection: Connection) -> None:
        await asyncio.sleep(0.3)
        await listing(lease("a", version=90))(connection)

    cluster.script("list", slow)
    cluster.script("watch", stream(end="cut"), stream(modified("a", version=101), end="hang"))
    seen = await follow(client, backoff, until=applied("a"))
    first, again = [one for one in seen if isinstance(one, Connected)]
    assert first.listed_seconds >= 0.3
    assert again.listed_seconds == 0.0  # it goes on where it broke


async def test_a_past_the_cluster_has_forgotten_is_skipped(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script("watch", stream(event("ERROR", GONE)), stream(end="hang"))
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 2, since="90")
    assert words_of(seen) == ["Listed 0 start", "Connected"]


async def test_a_cluster_at_a_lower_version_than_the_checkpoint_was_restored_and_is_not_replayed(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 2, since="5000")
    assert words_of(seen) == ["Listed 0 restored", "Connected"]
    assert [watch.query["resourceVersion"] for watch in cluster.seen("watch")] == ["100"]


async def test_nothing_is_replayed_when_nothing_was_written_meanwhile(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    seen = await follow(client, backoff, until=lambda seen: len(seen) == 2, since="100")
    assert words_of(seen) == ["Listed 0 start", "Connected"]
    assert len(cluster.seen("watch")) == 1


async def test_an_event_begins_with_the_short_delay_again(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    delays: list[float] = []

    class Noted(Backoff):
        def delay(self, **given: Any) -> float:
            delays.append(super().delay(**given))
            return delays[-1]

    cut, one = stream(end="cut"), stream(modified("a", version=105), end="cut")
    cluster.script("watch", cut, cut, one, stream(modified("b", version=106), end="hang"))
    backoff = Noted(first=0.001, jitter=lambda: 0.0)
    await follow(client, backoff, until=applied("b"))
    assert delays == [0.001, 0.002, 0.001]
