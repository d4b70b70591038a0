"""The Nodes of a cluster as `kubectl get nodes` asks for them, on a real socket."""

from __future__ import annotations

from typing import Any

import pytest

from leases.domain.lease import Node
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.kube_objects import TABLE, list_nodes
from leases.wire.status import Forbidden, Unreachable
from tests.kube.conftest import FAST
from tests.support.scripted_api import ScriptedServer, answer, status

COLUMNS = [{"name": "Name", "type": "string"}, {"name": "Status", "type": "string"}]


def row(name: str, said: str, **labels: str) -> dict[str, Any]:
    meta = {
        "name": name,
        "labels": {key.replace("__", "/"): value for key, value in labels.items()},
    }
    return {"cells": [name, said], "object": {"kind": "PartialObjectMetadata", "metadata": meta}}


def table(*rows: dict[str, Any], columns: Any = COLUMNS, after: str = "") -> dict[str, Any]:
    meta = {"resourceVersion": "7"} | ({"continue": after} if after else {})
    return {"kind": "Table", "metadata": meta, "columnDefinitions": columns, "rows": list(rows)}


async def asked(*replies: Any) -> tuple[list[Node], ScriptedServer]:
    server = ScriptedServer()
    server.script("verb", *replies)
    async with server.running():
        client = await connect(parse_source(f"url:{server.url}"), kubeconfig=None, limits=FAST)
        try:
            return await list_nodes(client, limit=2), server
        finally:
            await client.close()


async def test_nodes_are_read_in_pages_with_readiness_zone_and_pool():
    zone = {"topology.kubernetes.io__zone": "eu-1a", "karpenter.sh__nodepool": "spot"}
    first = table(row("n-1", "Ready", **zone), row("n-2", "Ready,SchedulingDisabled"), after="t2")
    second = table(row("n-3", "NotReady"), columns=None)
    found, server = await asked(answer(200, first), answer(200, second))
    assert found == [
        Node("n-1", True, "eu-1a", "spot"),
        Node("n-2", True),
        Node("n-3", False),
    ]
    one, two = server.seen("verb")
    assert (one.path, one.query) == ("/api/v1/nodes", {"limit": "2"})
    assert two.query == {"limit": "2", "continue": "t2"}
    assert one.headers["accept"] == TABLE


async def test_a_list_that_grew_too_old_is_begun_anew():
    gone = answer(410, status(410, "Expired"))
    found, _ = await asked(
        answer(200, table(row("n-1", "Ready"), after="t2")), gone, answer(200, table())
    )
    assert found == []


async def test_a_refusal_differs_from_an_unreadable_answer():
    with pytest.raises(Forbidden):
        await asked(answer(403, status(403, "Forbidden")))
    with pytest.raises(Unreachable, match="no table of Nodes"):
        await asked(answer(200, b"<html>"))
