"""A Lease that cannot be read, in a real list and a real watch: it is named, all others come."""

from __future__ import annotations

import asyncio
import contextlib

from leases.domain.lease import ObjectName
from leases.kube.backoff import Backoff
from leases.kube.lease_client import LeaseClient
from leases.kube.reflector import reflect
from leases.tracking.store import Store
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import Disconnected, Listed, ListPage, Unreadable
from tests.support.following import LIMIT, applied, follow
from tests.support.scripted_api import ScriptedServer, event, lease, listing, modified, stream
from tests.support.values.leases import NOON

ODD = {"metadata": lease("odd", version=101)["metadata"], "spec": {"leaseDurationSeconds": "15"}}
NAMELESS = b'{"type":"MODIFIED","object":{"metadata":{"name":5}}}\n'


async def test_a_watch_goes_on_in_the_same_connection(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    lines = (NAMELESS, event("MODIFIED", ODD), NAMELESS, modified("b", version=103))
    cluster.script("watch", stream(*lines, end="hang"))
    seen = await follow(client, backoff, until=applied("b"))
    odd = [one for one in seen if isinstance(one, Unreadable)]
    assert [one.key for one in odd] == [None, ObjectName("ns", "odd"), None]
    assert not [one for one in seen if isinstance(one, Disconnected)]
    assert len(cluster.seen("watch")) == 1


async def test_a_watch_that_broke_after_it_does_not_ask_for_it_again(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script(
        "watch",
        stream(event("MODIFIED", ODD), NAMELESS, end="cut"),
        stream(modified("b", version=103), end="hang"),
    )
    await follow(client, backoff, until=applied("b"))
    assert [watch.query["resourceVersion"] for watch in cluster.seen("watch")] == ["100", "101"]
    assert len(cluster.seen("list")) == 1


async def test_a_list_in_pages_has_all_others(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    first, last = lease("a", version=90), lease("z", version=91)
    cluster.script("list", listing(first, ODD, next_page="more"))
    cluster.script("page", listing({**ODD, "spec": []}, last))
    seen = await follow(client, backoff, until=lambda seen: isinstance(seen[-1], Listed))
    pages = [one for one in seen if isinstance(one, ListPage | Listed)]
    assert [x.metadata.name for page in pages for x in page.leases] == ["a", "z"]
    assert [x.key for page in pages for x in page.unreadable] == [ObjectName("ns", "odd")] * 2


async def test_a_watch_that_died_goes_on_where_it_stopped(
    cluster: ScriptedServer, client: LeaseClient, backoff: Backoff
) -> None:
    cluster.script(
        "watch",
        stream(modified("a", version=101), end="hang"),
        stream(modified("a", version=102, holder="b"), end="hang"),
    )
    store = Store("c")
    tracker = Tracker(store, [], lambda: NOON)

    async def run_until(version: str) -> None:
        since = tracker.resource_version
        resume = store.synced
        events = reflect(client, since=since, resume=resume, backoff=backoff)
        async with asyncio.timeout(LIMIT), contextlib.aclosing(events):
            async for one in events:
                tracker.handle(one)
                if tracker.resource_version == version:
                    return

    await run_until("101")
    await run_until("102")
    tracker.stop()
    assert len(cluster.seen("list")) == 1
    assert [watch.query["resourceVersion"] for watch in cluster.seen("watch")] == ["100", "101"]
