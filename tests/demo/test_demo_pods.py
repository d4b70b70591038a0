"""What the demo's Pods tell of the ends of their processes, read as evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import yaml

from leases.apiserver.serving import LeaseApiServer
from leases.demo.cluster_objects import DemoPod, PodName, forget_pods
from leases.demo.demo_client import DemoApi
from leases.domain.cause.facts import EventFact, PodFact, Question
from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.evidence import EvidenceReader
from tests.support.following import LIMIT

KEY = ObjectName("default", "web-5ln7kvmbd-abcde")


async def test_a_pod_tells_how_its_process_ended(tmp_path: Path) -> None:
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    reader = EvidenceReader(client, lambda: datetime.now(UTC), within=LIMIT, answer_within=LIMIT)

    async def pod() -> PodFact:
        (fact,) = await reader.answer([Question(Source.PODS, KEY)])
        assert isinstance(fact, PodFact)
        return fact

    place = PodName(KEY.namespace, KEY.name, "worker-7", "ReplicaSet", "web-5ln7kvmbd", "5ln7kvmbd")
    try:
        async with DemoApi(url=server.url, token=token) as api:
            played = DemoPod(place, api=api)
            await played.start()
            runs = await pod()
            assert (runs.node, runs.owner_name, runs.revision) == (
                "worker-7", "web-5ln7kvmbd", "5ln7kvmbd",
            )  # fmt: skip
            assert (runs.exit_code, runs.restarts, runs.deleted_at) == (None, 0, None)
            await played.fail("OOMKilled", 137)
            failed = await pod()
            assert (failed.exit_reason, failed.exit_code) == ("OOMKilled", 137)
            assert failed.exited_at
            assert failed.started_at is None
            await played.restart()
            again = await pod()
            assert (again.uid, again.restarts, again.exited_at) == (runs.uid, 1, failed.exited_at)
            assert again.started_at
            await played.restart()
            rebooted = await pod()
            assert (rebooted.restarts, rebooted.exit_reason, rebooted.exit_code) == (
                2, "Unknown", 255,
            )  # fmt: skip
            await played.delete()
            assert (await pod()).deleted_at
            await played.remove()
            assert (await pod()).gone
            events = await reader.answer([Question(Source.EVENTS, KEY, "Pod")])
            told = {event.reason for event in events if isinstance(event, EventFact)}
            assert told == {"Started", "BackOff", "Killing"}

            await played.start()
            await forget_pods(api, KEY.namespace)
            assert (await pod()).gone
    finally:
        await client.close()
        await server.stop()
