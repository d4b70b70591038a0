"""A watch that died in a running process makes its cluster stale, and the page says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from dashboard.config import ClusterSpec
from dashboard.serving.runtime import Options, Runtime
from leases.domain.watched_times import ConnectionState
from leases.kube.backoff import Backoff
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.tracking.tracker import Tracker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Runtime]:
    spec = ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED))
    one = Runtime(Options(clusters=(spec,), data=tmp_path))
    one.supervisor._backoff = lambda: Backoff(first=3600.0, limit=3600.0)
    await one.start()
    yield one
    await one.stop()
    await sync_to_async(connections.close_all)()


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


async def test_a_cluster_whose_watch_died_is_stale_and_says_why(
    running: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = running.clusters["a"].store
    await until(lambda: store.connection.state is ConnectionState.LIVE)

    def fails(*_given: object) -> None:
        raise KeyError

    monkeypatch.setattr(Tracker, "_follow", fails)
    body = {"metadata": {"name": "one", "namespace": "default"}, "spec": {"holderIdentity": "x"}}
    await running.clusters["a"].writer.create(body)
    await until(lambda: running.supervisor.restarts["watch", "a"])
    assert store.connection.state is ConnectionState.STALE
    assert store.connection.detail.startswith("The Leases of a are not watched. The task watch")
    assert store.connection.detail in str(running.problem("a"))
