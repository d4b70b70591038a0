"""Applies over the wire, and who owns what afterwards."""

from __future__ import annotations

from typing import Any

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES
from tests.apiserver.watch.streams import call

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


async def apply(
    api: LeaseApiServer, manager: str, meta: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a", **(meta or {})},
        "spec": spec,
    }
    path = f"{LEASES}/a"
    return await call(api.url, "PATCH", path, body, content_type=APPLY, fieldManager=manager)


def owners(found: dict[str, Any]) -> dict[str, Any]:
    entries = found["metadata"].get("managedFields", [])
    return {entry["manager"]: entry["fieldsV1"] for entry in entries}
