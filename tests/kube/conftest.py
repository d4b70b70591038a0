"""A scripted cluster and a client that asks soon and waits long."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from leases.kube.backoff import Backoff
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.http_session import Timeouts
from leases.kube.lease_client import LeaseClient
from tests.support.scripted_api import ScriptedServer

# A quiet watch is soon asked about. An answer that does come is never late, however busy the
# machine; a test of one that never comes lowers that limit.
FAST = Timeouts(
    connect=60,
    answer=60,
    page=60,
    quiet=0.05,
    idle=0.05,
    probe=60,
    slack=60,
    renew=0,
    replay=60,
    short=0,
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
