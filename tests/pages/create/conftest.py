"""Cluster a with a real embedded API, which knows coordinated elections, and an admin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from django.test import AsyncClient

from dashboard.pages import create
from dashboard.serving.runtime import Runtime
from dashboard.watched_cluster import WatchedCluster
from leases.apiserver.resources import CLE_GATE
from leases.apiserver.serving import LeaseApiServer
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from tests.support.board import async_browser_of


@pytest.fixture
async def cluster(
    board: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[WatchedCluster]:
    monkeypatch.setattr(create, "LOOKS", 0)  # nobody watches here
    server = LeaseApiServer(data=tmp_path, feature_gates=frozenset({CLE_GATE}))
    await server.start()
    one = board.clusters["a"]
    one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    yield one
    await one.client.close()
    await server.stop()


@pytest.fixture
async def admin() -> AsyncClient:
    return await async_browser_of("ada", "admin")
