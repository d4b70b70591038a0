"""The Nodes of a cluster are read again and again: soon while there are none."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace

from asgiref.sync import sync_to_async

from dashboard.serving.tasks import cluster_watch
from dashboard.serving.tasks.cluster_watch import read_nodes
from dashboard.watched_cluster import NodeBook
from leases.apiserver.serving import LeaseApiServer
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.tracking.store import Store
from tests.support.api_client import LeaseApi


async def test_a_cluster_without_nodes_is_asked_again_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_watch, "NONE_EVERY", 0.02)
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    book = NodeBook()
    task = asyncio.create_task(read_nodes(SimpleNamespace(name="a", client=client), book))
    try:
        async with asyncio.timeout(60):
            while "no Nodes" not in book.problem:
                await asyncio.sleep(0.01)
            # A site that keeps only Leases has no orphans.
            assert (book.read_at, book.missing(Store("a"))) == (None, [])
            zone = {"topology.kubernetes.io/zone": "z1"}
            node = {"metadata": {"name": "n-1", "labels": zone}}
            api = LeaseApi(server.kubeconfig)
            await sync_to_async(api.send)("POST", "/api/v1/nodes", node)
            while not book.nodes:
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await client.close()
        await server.stop()
    assert (book.problem, book.group("n-1", "zone")) == ("", "z1")
    assert book.read_at is not None
