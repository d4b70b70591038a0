"""The demo on the embedded Lease API: every phase and every change, and a clean end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from leases.apiserver.auth import Tokens
from leases.apiserver.resources import CLE_GATE
from leases.apiserver.serving import LeaseApiServer
from leases.demo.demo_client import ApiDownError, DemoApi
from leases.demo.electors import BEAT, Orders, Pace
from leases.demo.names import (
    API_SERVERS,
    CONTROL_PLANE,
    COORDINATED,
    ELECTIONS,
    LOCKS,
    NODE_NAMESPACE,
    NODES,
)
from leases.demo.run import run_demo
from leases.domain.change import Change, ChangeType
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.kube_objects import list_nodes, newest_events
from leases.kube.lease_client import LeaseClient, candidates_of
from leases.kube.reflector import reflect
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.status import NotFound
from tests.support.following import list_whole

TEMPO = 10.0  # the demo's first two minutes in 12 s
LIMIT = 120.0


@asynccontextmanager
async def serving(
    data: Path, port: int = 0, gates: frozenset[str] = frozenset()
) -> AsyncIterator[tuple[LeaseApiServer, LeaseClient]]:
    """An embedded API and a client of it."""
    server = LeaseApiServer(data=data, port=port, feature_gates=gates)
    await server.start()
    client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    try:
        yield server, client
    finally:
        await client.close()
        await server.stop()


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[tuple[LeaseApiServer, LeaseClient]]:
    async with serving(tmp_path) as pair:
        yield pair


@asynccontextmanager
async def playing(url: str, token: str) -> AsyncIterator[None]:
    """The demo, for as long as the block lasts."""
    before = asyncio.all_tasks()
    task = asyncio.create_task(run_demo(url=url, token=token, tempo=TEMPO))
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    left = {one for one in asyncio.all_tasks() - before if "leases/demo" in repr(one)}
    assert not left


def playing_at(api: LeaseApiServer) -> AbstractAsyncContextManager[None]:
    """The demo, signed in as any client of the embedded API."""
    kubeconfig = yaml.safe_load(api.kubeconfig.read_text())
    return playing(api.url, kubeconfig["users"][0]["user"]["token"])


class Audience:
    """Collects the updates of a tracker, and wakes whoever waits for one."""

    def __init__(self, store: Store) -> None:
        self.changes: list[Change] = []
        self.phases: set[Phase] = set()
        self.preferred: dict[ObjectName, str] = {}  # as last named, by the Lease's name
        self.moved: set[ObjectName] = set()  # were held by their preferred holder
        self._store = store
        self._updated = asyncio.Event()

    def note(self, update: Update) -> None:
        # What the API's own election writes is no work of the demo.
        self.changes += [one for one in update.changes if one.name != COORDINATED.name]
        standing = self._store.snapshot()
        self.phases |= {one.phase for one in standing if one.lease.key.name != COORDINATED.name}
        for lease in (one.lease for one in standing):
            if lease.spec.preferred_holder:
                self.preferred[lease.key] = lease.spec.preferred_holder
            if lease.holder and lease.holder == self.preferred.get(lease.key):
                self.moved.add(lease.key)
        self._updated.set()

    async def wait(self, phases: set[Phase], changes: set[ChangeType]) -> None:
        while not (phases <= self.phases and changes <= {one.change for one in self.changes}):
            await self._update()

    async def wait_for_preferred(self, key: ObjectName) -> None:
        while key not in self.moved:
            await self._update()

    async def _update(self) -> None:
        self._updated.clear()
        await self._updated.wait()


@asynccontextmanager
async def watching(client: LeaseClient) -> AsyncIterator[Audience]:
    store = Store("embedded")
    audience = Audience(store)
    tracker = Tracker(store, [audience.note], lambda: datetime.now(UTC))
    async with aclosing(reflect(client, since=None, backoff=Backoff())) as events:
        task = asyncio.create_task(tracker.run(events))
        try:
            yield audience
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_every_phase_and_change_and_a_move_to_the_preferred_holder_are_seen(
    tmp_path: Path,
) -> None:
    key = ObjectName(COORDINATED.namespace, COORDINATED.name)
    async with (
        asyncio.timeout(LIMIT),
        serving(tmp_path, gates=frozenset({CLE_GATE})) as (api, client),
        watching(client) as audience,
        playing_at(api),
    ):
        await audience.wait(set(Phase), set(ChangeType))
        await audience.wait_for_preferred(key)
        standing = await candidates_of(client, key, within=LIMIT)
    assert standing is not None
    assert audience.preferred[key] in {one.name for one in standing}


async def test_everybody_is_there_soon(embedded: tuple[LeaseApiServer, LeaseClient]) -> None:
    api, client = embedded
    wanted = {one.name for one in ELECTIONS} | {*NODES, *CONTROL_PLANE, *LOCKS}
    async with asyncio.timeout(LIMIT), playing_at(api):
        leases: dict[str, Lease] = {}
        while not (wanted <= set(leases) and len(leases) == len(wanted) + API_SERVERS):
            await asyncio.sleep(0.05)
            leases = {lease.key.name: lease for lease in (await list_whole(client)).leases}
    node = leases[NODES[0]]
    assert (node.holder, node.spec.acquire_time) == (NODES[0], None)
    assert node.metadata.owner_references is not None
    assert node.metadata.owner_references[0].kind == "Node"
    assert leases["kube-scheduler"].spec.lease_transitions == 0
    assert leases[LOCKS[0]].spec.lease_duration_seconds is None
    servers = [name for name in leases if name.startswith("apiserver-")]
    assert {len(name) for name in servers} == {len("apiserver-") + 26}


async def test_processes_that_wait_wake_at_the_same_beat_and_at_once_for_an_order() -> None:
    pace = Pace(TEMPO)
    some = [Orders[str](pace) for _ in range(5)]
    beat = BEAT / TEMPO
    waits = (beat * (3 + share) for share in (0.0, 0.1, 0.2, 0.3, 0.0))
    waiting = [asyncio.create_task(one.within(wait)) for one, wait in zip(some, waits, strict=True)]
    await asyncio.sleep(0)
    assert len(pace._waiting) <= 2  # timers, wherever between two beats this began
    some[0].give("stop")
    assert await waiting[0] == "stop"
    assert not any(one.done() for one in waiting[1:])
    assert await asyncio.gather(*waiting[1:]) == [None] * 4
    assert not pace._waiting


async def test_the_client_keeps_its_connection_and_says_when_the_api_is_down(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (server, _):
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        async with DemoApi(url=server.url, token=token) as api:
            assert await api.get(ObjectName("default", "none")) is None
            (kept,) = api._connections._idle
            assert await api.write("GET", "/version")
            assert api._connections._idle == [kept]
            kept.transport.close()  # as the API does after a while
            assert await api.write("GET", "/version")
            assert api._connections._idle != [kept]
            with pytest.raises(ApiDownError, match="401"):
                await DemoApi(url=server.url, token="wrong").get(ObjectName("default", "none"))
            await server.stop()
            with pytest.raises(ApiDownError):
                await api.get(ObjectName("default", "none"))


async def test_nodes_pods_and_events_stand_beside_the_leases(
    embedded: tuple[LeaseApiServer, LeaseClient],
) -> None:
    api, client = embedded
    key = ObjectName("kube-system", "kube-scheduler")
    async with asyncio.timeout(LIMIT), playing_at(api):
        while len(nodes := await list_nodes(client)) < len(NODES) - 1 + API_SERVERS:
            await asyncio.sleep(0.05)
        while not (events := await newest_events(client, "Lease", key, count=20, within=LIMIT)):
            await asyncio.sleep(0.05)
        node_lease = ObjectName(NODE_NAMESPACE, NODES[0])
        while node_lease not in {one.key for one in (await list_whole(client)).leases}:
            await asyncio.sleep(0.05)  # a kubelet registers its Node first
        lease = await client.raw_get(node_lease, within=LIMIT)
        path = f"/api/v1/nodes/{NODES[0]}"
        node = await client.read(path, dict[str, Any], "Node", query=(), within=LIMIT)
        path = "/api/v1/namespaces/kube-system/pods/kube-scheduler-control-plane-1"
        read = partial(client.read, path, dict[str, Any], "Pod", query=(), within=LIMIT)
        pod: dict[str, Any] = {}
        while not pod or pod["status"]["phase"] == "Pending":
            await asyncio.sleep(0.05)
            with suppress(NotFound):  # it comes after the events of another
                pod = await read()
    assert {node.name for node in nodes} & set(NODES) == set(NODES[:-1])
    assert {node.ready for node in nodes} == {True}
    assert len({node.zone for node in nodes}) == 3
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("control-plane-1", "Running")
    assert (events[0].reason, events[0].component) == ("LeaderElection", "kube-scheduler")
    assert events[0].message.endswith(" became leader")


async def test_a_second_run_contends_for_the_leases_of_the_first(
    embedded: tuple[LeaseApiServer, LeaseClient],
) -> None:
    api, client = embedded
    async with asyncio.timeout(LIMIT):
        async with playing_at(api):
            first = await renewed_after(client, "kube-scheduler", 0)
        async with playing_at(api):
            assert await renewed_after(client, "kube-scheduler", first) > first


async def test_the_demo_waits_for_an_api_that_is_down_and_outlives_its_restart(
    tmp_path: Path,
) -> None:
    tokens = Tokens(tmp_path)
    tokens.create("demo", "write", "demo-token-that-stays")
    tokens.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with asyncio.timeout(LIMIT), playing(url, "demo-token-that-stays"):
        version = 0
        for _ in range(2):
            async with serving(tmp_path, port) as (_, client):
                version = await renewed_after(client, "kube-scheduler", version)


async def renewed_after(client: LeaseClient, name: str, version: int) -> int:
    """The version of a Lease once it is there and newer than `version`."""
    while True:
        for lease in (await list_whole(client)).leases:
            if lease.key.name == name and int(lease.resource_version) > version:
                return int(lease.resource_version)
        await asyncio.sleep(0.05)
