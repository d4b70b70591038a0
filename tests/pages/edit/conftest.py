"""Cluster a with a real embedded API and one held Lease, and an admin."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from leases.apiserver.serving import LeaseApiServer
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.wire.microtime import format_microtime
from tests.support.board import async_browser_of, fill


@pytest.fixture
async def cluster(board, tmp_path):
    """Cluster a with one held Lease, and a client to write with."""
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    one = board.clusters["a"]
    one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    now = format_microtime(datetime.now(UTC))
    spec = {
        "holderIdentity": "cp-1", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now,
        "leaseTransitions": 7,
    }  # fmt: skip
    metadata = {"namespace": "default", "name": "story", "finalizers": ["a.example/b"]}
    fill(one.store, await one.client.create({"metadata": metadata, "spec": spec}))
    yield one
    await one.client.close()
    await server.stop()


@pytest.fixture
async def admin(transactional_db):
    return await async_browser_of("ada", "admin")
