"""LeaseCandidates as the embedded API serves them with its gate on, and as other servers do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leases.apiserver.resources import CLE_GATE
from leases.apiserver.serving import LeaseApiServer
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.lease_client import LeaseClient, candidates_of
from leases.wire.status import Forbidden, Unreachable
from tests.kube.conftest import FAST
from tests.support.api_client import LeaseApi
from tests.support.following import LIMIT
from tests.support.scripted_api import ScriptedServer, answer, silence, status

KEY = ObjectName("default", "demo")
NOT_FOUND = answer(404, status(404, "NotFound", "the server could not find the resource"))


def candidate(name: str, *, lease: str = "demo") -> dict[str, Any]:
    spec = {
        "leaseName": lease,
        "binaryVersion": "1.37.0",
        "emulationVersion": "1.36.0",
        "strategy": "OldestEmulationVersion",
        "renewTime": "2026-11-20T18:22:54.673445Z",
    }
    return {
        "apiVersion": "coordination.k8s.io/v1beta1",
        "kind": "LeaseCandidate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture
async def gated(tmp_path: Path) -> AsyncIterator[LeaseApiServer]:
    server = LeaseApiServer(data=tmp_path, feature_gates=frozenset({CLE_GATE}))
    await server.start()
    yield server
    await server.stop()


async def test_those_who_stand_for_the_lease_come_in_name_order(gated: LeaseApiServer) -> None:
    client = await connect(parse_source("embedded"), kubeconfig=gated.kubeconfig, limits=FAST)
    api = LeaseApi(gated.kubeconfig)
    path = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
    for body in (candidate("b"), candidate("a"), candidate("c", lease="other")):
        await asyncio.to_thread(api.send, "POST", path, body)
    found = await candidates_of(client, KEY, within=LIMIT)
    assert found is not None
    assert [one.name for one in found] == ["a", "b"]
    assert (found[0].spec.binary_version, found[0].spec.emulation_version) == ("1.37.0", "1.36.0")
    assert found[0].spec.ping_time is None
    await client.close()


async def test_a_server_without_them_is_no_error(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", NOT_FOUND)
    assert await candidates_of(client, KEY, within=LIMIT) is None


async def test_an_older_server_is_asked_for_the_older_version(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", NOT_FOUND, answer(200, {"items": [candidate("a")]}))
    found = await candidates_of(client, KEY, within=LIMIT)
    assert found is not None
    assert [one.name for one in found] == ["a"]
    assert [request.path.split("/")[3] for request in cluster.requests] == ["v1beta1", "v1alpha2"]


async def test_a_refusal_stays_a_refusal(cluster: ScriptedServer, client: LeaseClient) -> None:
    cluster.script("verb", answer(403, status(403, "Forbidden", "no")))
    with pytest.raises(Forbidden):
        await candidates_of(client, KEY, within=LIMIT)


async def test_a_silent_server_delays_nobody_for_long(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", silence())
    with pytest.raises(Unreachable, match="did not answer within 0.1 s"):
        await candidates_of(client, KEY, within=0.1)


async def test_a_body_that_is_no_list_is_named_so(
    cluster: ScriptedServer, client: LeaseClient
) -> None:
    cluster.script("verb", answer(200, msgspec.json.encode({"items": 7})))
    with pytest.raises(Unreachable, match="no list of LeaseCandidates"):
        await candidates_of(client, KEY, within=LIMIT)
