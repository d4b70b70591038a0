"""Whole servers with the gate on: contenders elect, also after the process was killed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from leases.apiserver.resources import CLE_GATE
from leases.apiserver.serving import LeaseApiServer
from leases.demo.demo_client import DemoApi
from leases.demo.electors import CoordinatedContender, Pace, seeded
from leases.demo.names import COORDINATED
from leases.domain.lease import ObjectName
from tests.apiserver.clients import ADMIN, LEASES, Client, Process, make_tokens
from tests.support.processes import LIMIT, wait_for

CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
GATE = ("--feature-gates", f"{CLE_GATE}=true")


async def test_one_of_two_contenders_of_client_go_is_elected(tmp_path: Path) -> None:
    make_tokens(tmp_path)
    server = LeaseApiServer(data=tmp_path, feature_gates=frozenset({CLE_GATE}))
    await server.start()
    key = ObjectName(COORDINATED.namespace, COORDINATED.name)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop)
        api = await stack.enter_async_context(DemoApi(url=server.url, token=ADMIN))
        both = [
            CoordinatedContender(COORDINATED, i, api=api, pace=Pace(), random=seeded(1, i))
            for i in range(2)
        ]
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in both]
            while not any(one.leading for one in both):
                await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
        found = await api.get(key)
    assert found is not None
    (leader,) = [one.identity for one in both if one.leading]
    assert found["spec"]["holderIdentity"] == leader
    assert found["spec"]["strategy"] == "OldestEmulationVersion"


def candidate(name: str, emulation: str) -> dict[str, Any]:
    spec = {
        "leaseName": "sched",
        "binaryVersion": "1.36.0",
        "emulationVersion": emulation,
        "strategy": "OldestEmulationVersion",
        "renewTime": "2099-01-01T00:00:00.000000Z",
    }
    return {"metadata": {"name": name}, "spec": spec}


def spec_of(client: Client) -> dict[str, Any]:
    answer = client.call("GET", f"{LEASES}/sched")
    return answer.json["spec"] if answer.status == 200 else {}


def test_a_server_elects_again_after_it_was_killed(tmp_path: Path) -> None:
    with Process(tmp_path / "data", *GATE) as api:
        client = Client(api.url)
        assert client.call("POST", CANDIDATES, candidate("a", "1.36.0")).status == 201
        wait_for(lambda: spec_of(client).get("holderIdentity") == "a", what="a to be elected")
        client.close()
        api.kill()
        api.start()
        client = Client(api.url)
        assert client.call("POST", CANDIDATES, candidate("b", "1.35.0")).status == 201
        wait_for(lambda: "b" in spec_of(client).values(), what="b to be preferred or elected")
        assert client.call("DELETE", CANDIDATES + "/b").status == 200
        assert client.call("DELETE", f"{LEASES}/sched").status == 200
        wait_for(lambda: spec_of(client).get("holderIdentity") == "a", what="a to be elected")
        client.close()
        assert api.stop() == 0
    assert "Traceback" not in api.log.read_text()
