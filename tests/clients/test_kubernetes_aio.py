"""The official Python client's asyncio half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.presence import imported
from tests.clients.somebody import Somebody

pytestmark = pytest.mark.clients


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Any]:
    config, client = imported("kubernetes.aio.config"), imported("kubernetes.aio.client")
    async with await config.new_client_from_config(str(kubeconfig)) as connection:
        yield client.CoordinationV1Api(connection)


def body(name: str, holder: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


async def test_a_lease_from_its_creation_to_its_end(api: Any, namespace: str) -> None:
    made = await api.create_namespaced_lease(namespace, body("one", "a"))
    made.spec.lease_transitions = 1
    changed = await api.replace_namespaced_lease("one", namespace, made)
    assert changed.spec.lease_transitions == 1
    error = imported("kubernetes.aio.client").ApiException
    with pytest.raises(error, match="the object has been modified"):
        await api.replace_namespaced_lease("one", namespace, made)
    patched = await api.patch_namespaced_lease(
        "one",
        namespace,
        [{"op": "remove", "path": "/spec/holderIdentity"}],
        _content_type="application/json-patch+json",
    )
    assert patched.spec.holder_identity is None
    await api.delete_namespaced_lease("one", namespace)
    with pytest.raises(error) as caught:
        await api.read_namespaced_lease("one", namespace)
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")


async def test_a_watch_reports_the_writes_of_others(
    api: Any, namespace: str, somebody: Somebody
) -> None:
    watch = imported("kubernetes.aio.watch").Watch()
    seen = []
    somebody.create("one", "a")
    async with asyncio.timeout(60), watch.stream(api.list_namespaced_lease, namespace) as events:
        async for event in events:
            seen.append((event["type"], event["object"].spec.holder_identity))
            if len(seen) == 1:
                somebody.hand_over("one", "b")
            elif len(seen) == 2:
                somebody.delete("one")
            else:
                break
    assert seen == [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]


async def test_many_at_once_lose_nothing(api: Any, namespace: str) -> None:
    await asyncio.gather(
        *(api.create_namespaced_lease(namespace, body(f"n{i:02}", "a")) for i in range(20))
    )
    found = await api.list_namespaced_lease(namespace)
    assert [item.metadata.name for item in found.items] == [f"n{i:02}" for i in range(20)]
