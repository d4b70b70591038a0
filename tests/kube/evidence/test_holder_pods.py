"""Where holders run, read for pages: once for all of them, in bounds, and with its moment."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from leases.domain.cause.clue import contender
from leases.domain.cause.facts import Knowledge, NodeFact, PodFact, Question
from leases.domain.cause.scene import node_of_holder
from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from leases.kube.evidence import EvidenceReader
from leases.kube.holder_pods import HolderPods, pod_questions
from leases.kube.lease_client import LeaseClient
from leases.wire.status import Unreachable
from tests.support.following import LIMIT
from tests.support.scripted_api import Connection, ScriptedServer, answer, silence, status

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
LEASE = ObjectName("team", "web-leader")
POD = Question(Source.PODS, ObjectName("team", "web-0"))


def a_pod(node: str = "worker-7") -> dict[str, Any]:
    return {"metadata": {"name": "web-0"}, "spec": {"nodeName": node}, "status": {}}


@pytest.fixture
def pods(client: LeaseClient) -> HolderPods:
    def clock() -> datetime:
        return START

    reader = EvidenceReader(client, clock, within=LIMIT, answer_within=LIMIT)
    return HolderPods(lambda: reader, clock)


async def test_pages_that_ask_together_or_soon_after_ask_the_cluster_once(
    cluster: ScriptedServer, pods: HolderPods
) -> None:
    cluster.script("verb", answer(200, a_pod()))
    said = await asyncio.gather(*(pods.ask([POD, POD], within=LIMIT) for _ in range(5)))
    await pods.ask([POD], within=LIMIT)
    assert len(cluster.requests) == 1
    (reading,) = {one[POD] for one in said}
    assert reading is not None
    assert (reading.at, reading.problem) == (START, "")
    await pods.ask([POD], within=LIMIT, fresh=0.0)
    assert len(cluster.requests) == 2


async def test_a_silent_cluster_holds_nobody_for_long(
    cluster: ScriptedServer, pods: HolderPods
) -> None:
    cluster.script("verb", silence())
    first, second = await asyncio.gather(*(pods.ask([POD], within=0.2) for _ in range(2)))
    assert first == second == {POD: None}
    cluster.script("verb", answer(200, a_pod()))  # and stands in nobody's way later
    assert (await pods.ask([POD], within=LIMIT))[POD] is not None


async def test_it_says_why_nothing_was_read(cluster: ScriptedServer, pods: HolderPods) -> None:
    cluster.script("verb", answer(403, status(403, "Forbidden", "pods is forbidden")))
    place = await pods.place_of(LEASE, "web-0", is_node=False, within=LIMIT)
    assert (place.pod, place.node, place.events_at) == (None, None, None)
    assert {one.source: told and told.problem for one, told in place.unread} == {
        Source.PODS: "pods is forbidden", Source.NODES: "pods is forbidden",
    }  # fmt: skip
    cluster.script("verb", answer(500, b"oops"))
    other = Question(Source.PODS, ObjectName("other", "web-0"))
    told = (await pods.ask([other], within=LIMIT))[other]
    assert told is not None
    assert "oops" in told.problem


async def test_without_a_connection_it_says_so() -> None:
    def reader() -> EvidenceReader:
        raise Unreachable("a is not connected.")

    told = (await HolderPods(reader, lambda: START).ask([POD], within=LIMIT))[POD]
    assert told is not None
    assert told.problem == "a is not connected."


async def test_a_holder_is_followed_to_its_node_and_its_events(
    cluster: ScriptedServer, pods: HolderPods
) -> None:
    """A static Pod has the name of its program before that of its node."""
    times = ("2026-11-22T11:58:00Z", "2026-11-22T11:59:00Z")
    events = {"items": [{"reason": f"at {at}", "lastTimestamp": at} for at in times]}
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

    async def served(connection: Connection) -> None:
        path = cluster.requests[-1].path.removeprefix("/api/v1/")
        known = {
            "namespaces/kube-system/pods/scheduler-cp-1": a_pod("cp-1"),
            "namespaces/kube-system/events": events,
            "nodes/cp-1": ready,
        }
        gone = status(404, "NotFound", "not found", details={"name": path.rpartition("/")[2]})
        body = known.get(path)
        await (answer(404, gone) if body is None else answer(200, body))(connection)

    cluster.script("verb", served)
    lease = ObjectName("kube-system", "scheduler")
    place = await pods.place_of(lease, "cp-1", is_node=False, within=LIMIT)
    assert place.pod is not None
    assert (place.pod.key.name, place.pod.node) == ("scheduler-cp-1", "cp-1")
    assert place.node is not None
    assert (place.node.name, place.node.ready) == ("cp-1", "True")
    assert [one.reason for one in place.events] == [f"at {at}" for at in reversed(times)]
    assert (place.events_at, place.unread) == (START, ())
    asked = len(cluster.requests)
    heartbeat = ObjectName("kube-node-lease", "cp-1")
    beat = await pods.place_of(heartbeat, "cp-1", is_node=True, within=LIMIT)
    assert (beat.pod, beat.node) == (None, place.node)
    assert len(cluster.requests) == asked


def test_what_others_read_is_known_and_the_newest_pod_of_a_name_counts() -> None:
    def reader() -> EvidenceReader:
        raise AssertionError("nobody asks")

    pods, key = HolderPods(reader, lambda: START), POD.key
    holder = contender("web-0")
    assert holder is not None
    assert [one.key for one in pod_questions(LEASE, "web-0")] == [key]

    def node(known: Knowledge) -> str:
        return node_of_holder(LEASE, holder, known)

    pods.learn(
        [PodFact(key=key, read_at=START, node="worker-1"), NodeFact(name="n", read_at=START)]
    )
    assert node(pods.known) == "worker-1"
    pods.learn([PodFact(key=key, read_at=START + timedelta(minutes=1), node="worker-2")])
    assert node(pods.known) == "worker-2"
    assert pods.version == 2
    pods.learn([PodFact(key=key, read_at=START + timedelta(minutes=2), gone=True)])
    assert node(pods.known) == ""
