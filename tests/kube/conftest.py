"""A scripted cluster and a client with limits short enough to wait for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from leases.kube.backoff import Backoff
from leases.kube.client import LeaseClient
from leases.kube.connect import connect
from leases.kube.session import Timeouts
from leases.kube.source import parse_source
from tests.kube.scripted import ScriptedServer

FAST = Timeouts(
    connect=2, answer=2, page=2, quiet=0.05, probe=0.2, slack=60, renew=0, replay=0.2, short=0
)


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer().running() as server:
        yield server


@pytest.fixture
def limits() -> Timeouts:
    return FAST


@pytest.fixture
async def client(cluster: ScriptedServer, limits: Timeouts) -> AsyncIterator[LeaseClient]:
    made = await connect(parse_source(f"url:{cluster.url}"), kubeconfig=None, limits=limits)
    yield made
    await made.close()


@pytest.fixture
def backoff() -> Backoff:
    return Backoff(first=0.01, limit=0.05, refused=0.02, jitter=lambda: 0.0)
