"""Evidence from a cluster that is well, refuses, is overloaded, silent, or hostile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leases.apiserver.serving import LeaseApiServer
from leases.domain.cause.facts import (
    ASK_REFUSED_AGAIN,
    EventFact,
    NodeFact,
    PodFact,
    Question,
    RefusedSource,
)
from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.evidence import AT_ONCE, PER_SECOND, EvidenceReader, RequestPace
from leases.kube.lease_client import LeaseClient
from tests.kube.conftest import FAST
from tests.support.api_client import LeaseApi
from tests.support.following import LIMIT
from tests.support.scripted_api import Connection, ScriptedServer, answer, silence, status

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
KEY = ObjectName("team", "web-0")
POD = Question(Source.PODS, KEY)
NODE = Question(Source.NODES, ObjectName("", "worker-7"))
EVENTS = Question(Source.EVENTS, KEY, "Pod")
FORBIDDEN = answer(403, status(403, "Forbidden", 'pods "web-0" is forbidden'))


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reader(client: LeaseClient, clock: Clock) -> EvidenceReader:
    return EvidenceReader(client, clock, within=LIMIT, answer_within=LIMIT)


def missing(**details: str) -> Any:
    return answer(404, status(404, "NotFound", "not found", details=details))


async def test_a_real_api_is_asked_for_all_three(tmp_path: Path, clock: Clock) -> None:
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    api = LeaseApi(server.kubeconfig)
    pod = {
        "metadata": {"name": KEY.name, "labels": {"pod-template-hash": "5ln7kvmbd"}},
        "spec": {"nodeName": "worker-7", "containers": [{"name": "main", "image": "demo:1"}]},
    }
    event = {
        "metadata": {"name": "web-0.1", "namespace": KEY.namespace},
        "involvedObject": {"kind": "Pod", "namespace": KEY.namespace, "name": KEY.name},
        "reason": "Killing",
        "message": "Stopping container main",
        "lastTimestamp": "2026-11-22T11:59:00Z",
        "source": {"component": "kubelet"},
    }
    writes = [
        ("namespaces", {"metadata": {"name": KEY.namespace}}),
        ("nodes", {"metadata": {"name": "worker-7"}, "spec": {"unschedulable": True}}),
        (f"namespaces/{KEY.namespace}/pods", pod),
        (f"namespaces/{KEY.namespace}/events", event),
    ]
    for path, body in writes:
        await asyncio.to_thread(api.send, "POST", f"/api/v1/{path}", body)
    client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig, limits=FAST)
    reader = EvidenceReader(client, clock, within=LIMIT, answer_within=LIMIT)
    gone = Question(Source.PODS, ObjectName(KEY.namespace, "web-1"))
    try:
        found_pod, found_node, found_event, absent = await reader.answer([POD, NODE, EVENTS, gone])
    finally:
        await client.close()
        await server.stop()
    assert isinstance(found_pod, PodFact)
    assert (found_pod.node, found_pod.revision, found_pod.read_at) == (
        "worker-7", "5ln7kvmbd", START,
    )  # fmt: skip
    assert isinstance(found_node, NodeFact)
    assert found_node.cordoned
    assert isinstance(found_event, EventFact)
    assert (found_event.kind, found_event.key, found_event.reason) == ("Pod", KEY, "Killing")
    assert absent == PodFact(key=gone.key, read_at=START, gone=True)


async def test_a_refusal_is_remembered_for_a_while(
    cluster: ScriptedServer, reader: EvidenceReader, clock: Clock
) -> None:
    cluster.script("verb", FORBIDDEN)
    other = Question(Source.PODS, ObjectName("team", "web-1"))
    said = RefusedSource(Source.PODS, START, 'pods "web-0" is forbidden', "team")
    assert await reader.answer([POD]) == [said]
    clock.now += ASK_REFUSED_AGAIN - timedelta(seconds=1)
    assert await reader.answer([other, POD]) == [said]
    assert len(cluster.requests) == 1
    clock.now += timedelta(seconds=1)
    cluster.script("verb", answer(200, {}))
    assert await reader.answer([POD]) == [PodFact(key=KEY, read_at=clock.now)]


async def test_a_clock_that_is_set_back_does_not_make_a_refusal_last(
    cluster: ScriptedServer, reader: EvidenceReader, clock: Clock
) -> None:
    cluster.script("verb", FORBIDDEN, answer(200, {}))
    await reader.answer([POD])
    clock.now -= timedelta(days=1)
    assert await reader.answer([POD]) == [PodFact(key=KEY, read_at=clock.now)]


async def test_many_questions_repeat_a_refusal_only_while_it_is_on_its_way(
    cluster: ScriptedServer, reader: EvidenceReader
) -> None:
    cluster.script("verb", FORBIDDEN)
    many = [Question(Source.PODS, ObjectName("team", f"web-{number}")) for number in range(50)]
    assert len(await reader.answer(many)) == 1
    assert len(cluster.requests) <= AT_ONCE


async def test_a_pod_that_is_gone_is_no_refusal_also_where_the_sentence_alone_says_so(
    cluster: ScriptedServer, reader: EvidenceReader, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.script("verb", answer(404, status(404, "NotFound", 'pods "web-0" not found')))
    with caplog.at_level(logging.INFO):
        (fact,) = await reader.answer([POD])
    assert isinstance(fact, PodFact)
    assert fact.gone
    assert caplog.messages == []


async def test_the_log_counts_the_namespaces_that_refuse(
    cluster: ScriptedServer, reader: EvidenceReader, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for number in range(12):
            cluster.script("verb", FORBIDDEN)
            await reader.answer([Question(Source.PODS, ObjectName(f"ns-{number}", "web-0"))])
    assert [line.partition(":")[0] for line in caplog.messages] == [
        "Pods cannot be read as evidence in ns-0",
        "Pods cannot be read as evidence in ns-9 and 9 others",
    ]


async def test_a_refusal_in_one_namespace_says_nothing_of_another(
    cluster: ScriptedServer, reader: EvidenceReader
) -> None:
    cluster.script("verb", FORBIDDEN, answer(200, {}))
    elsewhere = Question(Source.PODS, ObjectName("other", "web-0"))
    await reader.answer([POD])
    assert await reader.answer([elsewhere]) == [PodFact(key=elsewhere.key, read_at=START)]


async def test_a_missing_object_differs_from_a_missing_resource(
    cluster: ScriptedServer, reader: EvidenceReader
) -> None:
    cluster.script("verb", missing(name="worker-7", kind="nodes"))
    assert await reader.answer([NODE]) == [NodeFact(name="worker-7", read_at=START, gone=True)]
    for reply in (missing(), answer(404, b"404 page not found")):
        cluster.script("verb", reply)
        (refusal,) = await reader.answer([Question(Source.PODS, ObjectName(str(reply), "a"))])
        assert isinstance(refusal, RefusedSource)
    cluster.script("verb", missing())
    (refusal,) = await reader.answer([EVENTS])
    assert refusal == RefusedSource(Source.EVENTS, START, "not found", "team")


async def test_an_overloaded_server_is_asked_again_after_the_time_it_names(
    cluster: ScriptedServer, reader: EvidenceReader
) -> None:
    busy = answer(429, status(429, "TooManyRequests"), Retry_After="1")
    cluster.script("verb", busy, answer(200, {}))
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await reader.answer([POD]) == [PodFact(key=KEY, read_at=START)]
    assert loop.time() - began >= 1

    cluster.script("verb", answer(429, status(429, "TooManyRequests"), Retry_After="3600"))
    assert await reader.answer([POD]) == []
    asked = len(cluster.requests)
    assert await reader.answer([POD, NODE]) == []
    assert len(cluster.requests) == asked


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer(500, b"oops"), "oops"),
        (answer(200, b"<html>"), "no Pod"),
        (answer(200, b'{"status": {"phase": 7}}'), "no Pod"),
        (answer(200, b"[" * 100_000), "no Pod"),
        (silence(), "did not answer within"),
    ],
    ids=["error", "garbage", "wrong shape", "deep", "silence"],
)
async def test_a_failure_gives_no_fact_and_is_logged_once(
    cluster: ScriptedServer, client: LeaseClient, clock: Clock, reply: Any, said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    within = 0.2 if said.startswith("did not answer") else LIMIT
    reader = EvidenceReader(client, clock, within=within, answer_within=LIMIT)
    cluster.script("verb", reply)
    with caplog.at_level(logging.WARNING):
        assert await reader.answer([POD]) == []
        assert await reader.answer([POD]) == []
    (line,) = caplog.messages
    assert line.startswith("no evidence for 1 of 1 questions: ")
    assert said in line


async def test_a_huge_body_is_not_read_to_its_end(
    cluster: ScriptedServer, reader: EvidenceReader, caplog: pytest.LogCaptureFixture
) -> None:
    sent = 0

    async def huge(connection: Connection) -> None:
        nonlocal sent
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                await connection.send(b" " * 1_000_000)
                sent += 1

    cluster.script("verb", huge)
    assert await reader.answer([POD]) == []
    assert "more than 4 MiB" in caplog.text
    assert sent < 50


async def test_a_name_that_is_no_object_is_not_asked_for(
    cluster: ScriptedServer, reader: EvidenceReader
) -> None:
    assert await reader.answer([Question(Source.PODS, ObjectName("team", "../../secrets"))]) == []
    assert cluster.requests == []


async def test_questions_of_a_silent_cluster_end_together(
    cluster: ScriptedServer, client: LeaseClient, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    reader = EvidenceReader(client, clock, within=LIMIT, answer_within=0.2)
    cluster.script("verb", silence())
    many = [Question(Source.PODS, ObjectName("team", f"web-{number}")) for number in range(50)]
    assert await reader.answer(many) == []
    assert len(cluster.requests) <= AT_ONCE
    assert caplog.messages == ["no evidence for 50 of 50 questions: the cluster is too slow"]


async def test_few_requests_run_at_once(cluster: ScriptedServer, reader: EvidenceReader) -> None:
    running = most = 0

    async def counted(connection: Connection) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.2)
        running -= 1
        await answer(200, {})(connection)

    cluster.script("verb", counted)
    many = [Question(Source.PODS, ObjectName("team", f"web-{number}")) for number in range(12)]
    assert len(await reader.answer([*many, *many])) == 12
    assert len(cluster.requests) == 12
    assert 1 < most <= AT_ONCE


def test_few_requests_start_in_a_second() -> None:
    pace = RequestPace()
    starts = [pace.next_start(100.0) for _ in range(50)]
    assert starts[0] == 100.0
    for first, later in zip(starts, starts[PER_SECOND:], strict=False):
        assert later - first >= 1 - 1e-9
