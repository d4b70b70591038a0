"""Facts from the Pods, Nodes and Events of a real kube-apiserver, as they were recorded."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from leases.domain.cause.facts import EventFact, NodeFact, PodFact
from leases.domain.lease import ObjectName
from leases.kube.evidence import MAX_TEXT, event_fact, node_fact, pod_fact
from leases.kube.kube_objects import KubeEvent, NodeObject, Pod
from leases.wire.json_decoding import decoder

RECORDINGS = Path(__file__).resolve().parents[2] / "conformance" / "incidents"
NAMES = sorted(path.name.removesuffix(".md") for path in RECORDINGS.glob("[a-z]*.md"))
AT = datetime(2026, 11, 22, tzinfo=UTC)


class About(msgspec.Struct):
    kind: str
    name: str
    namespace: str = ""


class RecordedEvent(KubeEvent, frozen=True, rename={"about": "involvedObject"}, kw_only=True):
    about: About


class Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


def objects(recording: str, what: str) -> Iterator[bytes]:
    read = decoder(Line)
    with gzip.open(RECORDINGS / f"{recording}.{what}.ndjson.gz") as lines:
        for line in map(read, lines):
            if line.type != "BOOKMARK":
                yield bytes(line.object)


def pods(recording: str) -> Iterator[PodFact]:
    for pod in map(decoder(Pod), objects(recording, "pods")):
        yield pod_fact(pod, ObjectName(pod.metadata.namespace, pod.metadata.name), AT)


@pytest.mark.parametrize("recording", NAMES)
def test_every_pod_has_what_a_cause_may_follow_from(recording: str) -> None:
    facts = list(pods(recording))
    assert len(facts) > 20
    for fact in facts:
        assert fact.uid
        assert fact.node
        assert fact.created_at
        assert fact.revision or fact.owner_kind != "ReplicaSet"
        assert (fact.exit_code is None) == (fact.exited_at is None) == (not fact.exit_reason)


def test_ends_of_containers_are_told_apart() -> None:
    facts = list(pods("crashes"))
    ends = {(fact.exit_reason, fact.exit_code) for fact in facts}
    assert {("OOMKilled", 137), ("Error", 137)} <= ends
    evicted = next(fact for fact in facts if fact.reason == "Evicted")
    assert (evicted.phase, evicted.disrupted) == ("Failed", "TerminationByKubelet")
    assert evicted.owner_kind == "ReplicaSet"
    again = next(fact for fact in facts if fact.restarts and fact.started_at)
    assert again.started_at
    assert again.exited_at
    assert again.started_at >= again.exited_at


def test_a_drain_shows_in_pods_and_nodes() -> None:
    drained = [fact for fact in pods("handovers") if fact.disrupted]
    assert {fact.disrupted for fact in drained} == {"EvictionByEvictionAPI"}
    assert {fact.key for fact in drained if fact.deleted_at} == {fact.key for fact in drained}
    facts = [
        node_fact(node, node.metadata.name, AT)
        for node in map(decoder(NodeObject), objects("handovers", "nodes"))
    ]
    assert {fact.name for fact in facts if fact.cordoned} == {fact.node for fact in drained}


def test_a_dead_node_shows_since_when() -> None:
    facts = [
        node_fact(node, node.metadata.name, AT)
        for node in map(decoder(NodeObject), objects("nodes-and-networks", "nodes"))
    ]
    dead = [fact for fact in facts if fact.ready != "True"]
    assert {(fact.ready, fact.ready_reason) for fact in dead} == {("Unknown", "NodeStatusUnknown")}
    assert all(fact.ready_since for fact in facts)


@pytest.mark.parametrize("recording", NAMES)
def test_every_event_tells_what_and_when(recording: str) -> None:
    facts = []
    for event in map(decoder(RecordedEvent), objects(recording, "events")):
        key = ObjectName(event.about.namespace, event.about.name)
        facts.append(event_fact(event, event.about.kind, key))
    assert None not in facts
    assert {fact.reason for fact in facts if fact} >= {"LeaderElection", "Started"}
    assert all(fact.component and fact.times for fact in facts if fact)


def test_what_is_missing_is_no_error_and_what_is_huge_is_cut() -> None:
    key = ObjectName("ns", "a")
    assert pod_fact(Pod(), key, AT) == PodFact(key=key, read_at=AT)
    assert node_fact(NodeObject(), "n", AT) == NodeFact(name="n", read_at=AT)
    assert event_fact(KubeEvent(), "Pod", key) is None
    long = event_fact(KubeEvent(reason="r" * 9999, last_timestamp=AT), "Pod", key)
    assert long == EventFact(kind="Pod", key=key, reason="r" * MAX_TEXT, message="", at=AT)
