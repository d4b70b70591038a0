"""lightkube: typed, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.clients.presence import imported
from tests.clients.somebody import Somebody

pytestmark = pytest.mark.clients
RENEWED = datetime(2024, 5, 1, 10, 0, 0, 123457, tzinfo=UTC)


def config_of(kubeconfig: Path) -> Any:
    return imported("lightkube").KubeConfig.from_file(kubeconfig)


@pytest.fixture
def client(kubeconfig: Path, namespace: str) -> Iterator[Any]:
    found = imported("lightkube").Client(
        config_of(kubeconfig), namespace=namespace, field_manager="lightkube", trust_env=False
    )
    yield found
    found.close()


def kind() -> Any:
    return imported("lightkube.resources.coordination_v1").Lease


def lease(name: str, **spec: Any) -> Any:
    models = imported("lightkube.models.coordination_v1")
    meta = imported("lightkube.models.meta_v1").ObjectMeta(name=name, labels={"app": name})
    return kind()(metadata=meta, spec=models.LeaseSpec(**spec))


def test_a_lease_from_its_creation_to_its_end(client: Any) -> None:
    made = client.create(lease("one", holderIdentity="a", renewTime=RENEWED))
    found = client.get(kind(), "one")
    assert found == made
    assert found.spec.renewTime == RENEWED
    found.spec.holderIdentity = "b"
    assert client.replace(found).spec.holderIdentity == "b"
    error = imported("lightkube").ApiError
    with pytest.raises(error) as stale:
        client.replace(found)
    assert (stale.value.status.code, stale.value.status.reason) == (409, "Conflict")
    client.delete(kind(), "one")
    with pytest.raises(error) as gone:
        client.get(kind(), "one")
    assert gone.value.status.message == 'leases.coordination.k8s.io "one" not found'


@pytest.mark.parametrize("how", ["JSON", "MERGE", "STRATEGIC"])
def test_a_patch_of_each_kind(client: Any, how: str) -> None:
    patch_type = imported("lightkube.types").PatchType[how]
    client.create(lease("one", holderIdentity="a", leaseTransitions=3))
    patch: Any = {"spec": {"holderIdentity": "b"}}
    if how == "JSON":
        patch = [{"op": "replace", "path": "/spec/holderIdentity", "value": "b"}]
    done = client.patch(kind(), "one", patch, patch_type=patch_type)
    assert (done.spec.holderIdentity, done.spec.leaseTransitions) == ("b", 3)


def test_server_side_apply(client: Any) -> None:
    body = lease("one", holderIdentity="a")
    body.apiVersion, body.kind = "coordination.k8s.io/v1", "Lease"
    assert client.apply(body).spec.holderIdentity == "a"
    body.spec.holderIdentity = "b"
    with pytest.raises(imported("lightkube").ApiError, match='conflict with "lightkube"'):
        client.apply(body, field_manager="other")
    assert client.apply(body, field_manager="other", force=True).spec.holderIdentity == "b"


def test_pages_and_selectors(client: Any) -> None:
    for name in ("a", "b", "c"):
        client.create(lease(name))
    assert [found.metadata.name for found in client.list(kind(), chunk_size=2)] == ["a", "b", "c"]
    chosen = client.list(kind(), labels={"app": ["b", "c"]})
    assert [found.metadata.name for found in chosen] == ["b", "c"]
    client.deletecollection(kind())
    assert list(client.list(kind())) == []


def test_a_watch_reports_the_writes_of_others(client: Any, somebody: Somebody) -> None:
    somebody.create("one", "a")
    seen = []
    for what, found in client.watch(kind()):
        seen.append((what, found.spec.holderIdentity))
        if len(seen) == 1:
            somebody.hand_over("one", "b")
        elif len(seen) == 2:
            somebody.delete("one")
        else:
            break
    assert seen == [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]


async def test_the_same_in_asyncio(kubeconfig: Path, namespace: str, somebody: Somebody) -> None:
    client = imported("lightkube").AsyncClient(
        config_of(kubeconfig), namespace=namespace, trust_env=False
    )
    made = await client.create(lease("one", holderIdentity="a"))
    assert await client.get(kind(), "one") == made
    async with asyncio.timeout(60):
        watch = client.watch(kind(), resource_version=made.metadata.resourceVersion)
        somebody.hand_over("one", "b")
        what, found = await anext(watch)
        assert (what, found.spec.holderIdentity) == ("MODIFIED", "b")
        await watch.aclose()
    assert [found.metadata.name async for found in client.list(kind())] == ["one"]
    await client.close()
