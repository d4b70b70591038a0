"""kr8s, which finds out about Leases by itself from discovery."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.presence import imported
from tests.clients.somebody import Somebody

pytestmark = [
    pytest.mark.clients,
    # It warns of every server newer than the newest it was tried with, and goes on.
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning"),
]


@pytest.fixture(autouse=True)
def _authorities_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the file of authorities that the environment names, and refuses an empty one."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def api(kubeconfig: Path, namespace: str) -> AsyncIterator[Any]:
    found = await imported("kr8s.asyncio").api(kubeconfig=str(kubeconfig), namespace=namespace)
    yield found
    await found._session.aclose()  # it has no way of its own to close its connections


def lease_class() -> Any:
    objects = imported("kr8s.asyncio.objects")
    return objects.new_class("Lease", "coordination.k8s.io/v1", namespaced=True, asyncio=True)


async def made(api: Any, name: str, holder: str) -> Any:
    found = await lease_class()(
        {
            "metadata": {"name": name, "namespace": api.namespace, "labels": {"app": name}},
            "spec": {"holderIdentity": holder, "renewTime": "2024-05-01T10:00:00.123457Z"},
        },
        api=api,
    )
    await found.create()
    return found


async def test_a_lease_from_its_creation_to_its_end(api: Any) -> None:
    lease = await made(api, "one", "a")
    assert lease.spec.renewTime == "2024-05-01T10:00:00.123457Z"
    assert lease.raw.metadata.uid
    await lease.patch({"spec": {"holderIdentity": "b"}})
    assert lease.spec.holderIdentity == "b"
    await lease.patch(
        [{"op": "replace", "path": "/spec/holderIdentity", "value": "c"}], type="json"
    )
    await lease.refresh()
    assert lease.spec.holderIdentity == "c"
    await lease.label(tier="one")
    await lease.annotate(note="<b>")
    assert (lease.labels.tier, lease.annotations.note) == ("one", "<b>")
    with pytest.raises(imported("kr8s").ServerError, match="already exists"):
        await made(api, "one", "a")
    await lease.delete()
    assert not await lease.exists()
    with pytest.raises(imported("kr8s").NotFoundError):
        await lease.refresh()


async def test_it_finds_leases_by_their_plural_name(api: Any) -> None:
    for name in ("a", "b"):
        await made(api, name, "x")
    found = [each.name async for each in api.get("leases.coordination.k8s.io")]
    assert found == ["a", "b"]
    chosen = [each.name async for each in api.get("leases", label_selector={"app": "b"})]
    assert chosen == ["b"]
    kinds = [each["kind"] for each in await api.api_resources()]
    assert "Lease" in kinds


async def test_a_watch_reports_the_writes_of_others(api: Any, somebody: Somebody) -> None:
    somebody.create("one", "a")
    seen = []
    async with asyncio.timeout(60):
        async for what, found in api.watch("leases.coordination.k8s.io"):
            seen.append((what, found.spec.holderIdentity))
            if len(seen) == 1:
                somebody.hand_over("one", "b")
            elif len(seen) == 2:
                somebody.delete("one")
            else:
                break
    assert seen == [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]


def test_the_same_without_asyncio(kubeconfig: Path, namespace: str, somebody: Somebody) -> None:
    somebody.create("one", "a")
    kr8s = imported("kr8s")
    api = kr8s.api(kubeconfig=str(kubeconfig), namespace=namespace)
    (lease,) = api.get("leases.coordination.k8s.io", "one")
    assert lease.spec.holderIdentity == "a"
    lease.patch({"spec": {"holderIdentity": "b"}})
    assert somebody.read("one")["spec"]["holderIdentity"] == "b"
    lease.delete()
    assert not lease.exists()
    imported("kr8s._async_utils").as_sync_func(api._session.aclose)()
