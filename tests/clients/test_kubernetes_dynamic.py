"""The official Python client's dynamic half, which knows no types and asks discovery, and the same
in asyncio.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.presence import imported

pytestmark = pytest.mark.clients
VERSION = "coordination.k8s.io/v1"


def body(holder: str) -> dict[str, Any]:
    return {
        "apiVersion": VERSION,
        "kind": "Lease",
        "metadata": {"name": "one"},
        "spec": {"holderIdentity": holder},
    }


@pytest.fixture
def leases(kubeconfig: Path, tmp_path: Path) -> Iterator[Any]:
    config, dynamic = imported("kubernetes.config"), imported("kubernetes.dynamic")
    connection = config.new_client_from_config(str(kubeconfig))
    client = dynamic.DynamicClient(connection, cache_file=str(tmp_path / "discovery.json"))
    yield client.resources.get(api_version=VERSION, kind="Lease")
    connection.close()


def test_discovery_names_the_verbs(leases: Any) -> None:
    assert leases.namespaced
    assert {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} <= {
        *leases.verbs
    }


def test_a_lease_from_its_creation_to_its_end(leases: Any, namespace: str) -> None:
    made = leases.create(body=body("a"), namespace=namespace)
    assert leases.get(name="one", namespace=namespace).to_dict() == made.to_dict()
    assert leases.patch(body=body("b"), namespace=namespace).spec.holderIdentity == "b"
    kind = "application/merge-patch+json"
    patch = {"metadata": {"name": "one", "labels": {"k": "v"}}}
    merged = leases.patch(body=patch, namespace=namespace, content_type=kind)
    assert merged.metadata.labels.k == "v"
    stale = body("c") | {
        "metadata": {"name": "one", "resourceVersion": made.metadata.resourceVersion}
    }
    with pytest.raises(imported("kubernetes.dynamic.exceptions").ConflictError):
        leases.replace(body=stale, namespace=namespace)
    events = leases.watch(namespace=namespace, resource_version=0, timeout=5)
    first = next(events)
    assert (first["type"], first["object"].spec.holderIdentity) == ("ADDED", "b")
    events.close()
    leases.delete(name="one", namespace=namespace)
    with pytest.raises(imported("kubernetes.dynamic.exceptions").NotFoundError):
        leases.get(name="one", namespace=namespace)


def test_server_side_apply(leases: Any, namespace: str) -> None:
    made = leases.server_side_apply(body=body("a"), namespace=namespace, field_manager="first")
    assert [entry.operation for entry in made.metadata.managedFields] == ["Apply"]
    with pytest.raises(imported("kubernetes.dynamic.exceptions").ConflictError):
        leases.server_side_apply(body=body("b"), namespace=namespace, field_manager="second")
    forced = leases.server_side_apply(
        body=body("b"), namespace=namespace, field_manager="second", force_conflicts=True
    )
    assert forced.spec.holderIdentity == "b"


async def test_the_same_in_asyncio(kubeconfig: Path, namespace: str, tmp_path: Path) -> None:
    config, dynamic = imported("kubernetes.aio.config"), imported("kubernetes.aio.dynamic")
    async with await config.new_client_from_config(str(kubeconfig)) as connection:
        client = await dynamic.DynamicClient(connection, cache_file=str(tmp_path / "cache.json"))
        leases = await client.resources.get(api_version=VERSION, kind="Lease")
        made = await leases.create(body=body("a"), namespace=namespace)
        found = await leases.get(name="one", namespace=namespace)
        assert found.to_dict() == made.to_dict()
        seen = [event async for event in leases.watch(namespace=namespace, timeout=1)]
        assert [event["object"].metadata.name for event in seen] == ["one"]
        await leases.delete(name="one", namespace=namespace)
        with pytest.raises(imported("kubernetes.aio.dynamic.exceptions").NotFoundError):
            await leases.get(name="one", namespace=namespace)
