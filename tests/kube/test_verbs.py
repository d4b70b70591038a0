"""Every verb against the embedded Lease API, and a reflector that follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from leases.apiserver.serving import LeaseApiServer
from leases.domain.lease import ObjectName
from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.lease_client import LeaseClient
from leases.kube.reflector import reflect
from leases.wire.status import AlreadyExists, Conflict, Gone, Invalid, NotFound
from leases.wire.watch_decoding import Applied, Connected, Deleted, ReflectorEvent
from tests.kube.conftest import FAST
from tests.support.following import LIMIT, follow, list_whole, words_of

KEY = ObjectName("default", "a")


def lease(name: str, **spec: Any) -> dict[str, Any]:
    spec.setdefault("holderIdentity", "x")
    return {"metadata": {"namespace": "default", "name": name}, "spec": spec}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(api: LeaseApiServer) -> AsyncIterator[LeaseClient]:
    made = await connect(parse_source("embedded"), kubeconfig=api.kubeconfig, limits=FAST)
    yield made
    await made.close()


async def test_a_created_lease_can_be_read_as_yaml_and_as_a_table(client: LeaseClient) -> None:
    created = await client.create(lease("a", leaseDurationSeconds=15))
    assert await client.get(KEY) == created
    assert created.holder == "x"
    whole = await client.raw_get(KEY)
    assert whole["kind"] == "Lease"
    assert whole["metadata"]["creationTimestamp"]
    with pytest.raises(AlreadyExists):
        await client.create(lease("a"))


async def test_a_dry_run_shows_the_result_and_writes_nothing(client: LeaseClient) -> None:
    assert (await client.create(lease("a"), dry_run=True)).holder == "x"
    with pytest.raises(NotFound, match="not found"):
        await client.get(KEY)
    await client.create(lease("a"))
    wanted = {"spec": {"holderIdentity": "y"}}
    assert (await client.patch(KEY, wanted, dry_run=True)).holder == "y"
    assert (await client.raw_patch(KEY, wanted, dry_run=True))["spec"]["holderIdentity"] == "y"
    await client.delete(KEY, dry_run=True)
    assert (await client.get(KEY)).holder == "x"


async def test_a_wrong_value_says_which_field(client: LeaseClient) -> None:
    with pytest.raises(Invalid, match="must be greater than 0") as raised:
        await client.create(lease("a", leaseDurationSeconds=0))
    assert [cause.field for cause in raised.value.causes] == ["spec.leaseDurationSeconds"]


async def test_a_write_from_an_old_reading_is_a_conflict(client: LeaseClient) -> None:
    old = await client.create(lease("a"))
    await client.patch(KEY, {"spec": {"holderIdentity": "y"}})
    stale = lease("a")
    stale["metadata"]["resourceVersion"] = old.resource_version
    with pytest.raises(Conflict):
        await client.patch(KEY, stale)
    with pytest.raises(Conflict):
        await client.replace(KEY, stale)
    with pytest.raises(Conflict):
        await client.delete(KEY, resource_version=old.resource_version)
    with pytest.raises(Conflict):
        await client.delete(KEY, uid="another")


async def test_replace_puts_the_whole_object(client: LeaseClient) -> None:
    created = await client.create(lease("a", leaseDurationSeconds=15))
    body = lease("a", holderIdentity="y")
    body["metadata"]["resourceVersion"] = created.resource_version
    replaced = await client.replace(KEY, body)
    assert (replaced.holder, replaced.spec.lease_duration_seconds) == ("y", None)


async def test_a_deleted_lease_is_gone(client: LeaseClient) -> None:
    created = await client.create(lease("a"))
    await client.delete(KEY, uid=created.uid)
    with pytest.raises(NotFound):
        await client.delete(KEY)
    assert (await list_whole(client)).leases == ()


async def test_a_list_in_pages_is_the_list(client: LeaseClient) -> None:
    for number in range(7):
        await client.create(lease(f"lease-{number}"))
    whole = await list_whole(client)
    assert len(whole.leases) == 7
    assert await list_whole(client, limit=3) == whole
    assert await client.newest_version() == whole.resource_version


async def test_a_watch_sends_what_follows_its_version_and_ends_at_its_timeout(
    client: LeaseClient,
) -> None:
    first = await client.create(lease("a"))
    second = await client.patch(KEY, {"spec": {"holderIdentity": "y"}})
    await client.delete(KEY)
    async with client.watch(first.resource_version, timeout_seconds=1) as events:
        seen = [event async for reading in events for event in reading]
    changes = [event for event in seen if isinstance(event, Applied | Deleted)]
    assert isinstance(changes[0], Applied)
    assert changes[0].lease == second
    assert isinstance(changes[1], Deleted)
    assert changes[1].lease.uid == second.uid


async def test_a_version_from_before_the_beginning_is_gone(client: LeaseClient) -> None:
    async with client.watch("1", timeout_seconds=1) as events:
        with pytest.raises(Gone):
            await anext(events)


async def test_events_written_while_nobody_watched_are_replayed(
    client: LeaseClient, backoff: Backoff
) -> None:
    await client.create(lease("a"))
    before = (await list_whole(client)).resource_version
    await client.create(lease("b"))
    await client.delete(KEY)
    seen = await follow(client, backoff, until=connected, since=before)
    words = [word.partition("@")[0] for word in words_of(seen)]
    assert words == ["Replayed Applied b", "Replayed Deleted a", "Listed 1 start", "Connected"]


async def test_a_reflector_follows_the_embedded_api_over_its_restart(
    tmp_path: Path, backoff: Backoff
) -> None:
    first = LeaseApiServer(data=tmp_path)
    await first.start()
    port = int(first.url.rpartition(":")[2])
    client = await connect(parse_source("embedded"), kubeconfig=first.kubeconfig, limits=FAST)
    await client.create(lease("a"))
    second = LeaseApiServer(data=tmp_path, port=port)
    words: list[str] = []
    async with (
        asyncio.timeout(LIMIT),
        aclosing(reflect(client, since=None, backoff=backoff)) as seen,
    ):
        async for event in seen:
            words += words_of([event])
            if words == ["Listed 1 start", "Connected"]:
                await first.stop()
            elif words[-1] == "Disconnected" and words.count("Disconnected") == 2:
                await second.start()
            elif words[-1] == "Connected":
                await client.create(lease("b"))
            elif words[-1].startswith("Applied b"):
                break
    await client.close()
    await second.stop()
    assert words.count("Connected") == 2


def connected(seen: list[ReflectorEvent]) -> bool:
    return isinstance(seen[-1], Connected)
