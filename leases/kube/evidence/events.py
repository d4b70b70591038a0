"""Read the Kubernetes Events about one object, if we may. client-go writes one about a Lease when a
holder starts or stops.
"""

from __future__ import annotations

import msgspec

from leases.domain.lease import ObjectName
from leases.kube.evidence.kube_objects import MAX_BODY, KubeEvent
from leases.kube.lease_client import LeaseClient, segment

PATH = "/api/v1/namespaces/{}/events"
PAGE = 500
MAX_PAGES = 4  # the API lists by name, so the newest may come last
NODE_NAMESPACE = "default"  # of Events about objects without a namespace


class _ListMetadata(msgspec.Struct, frozen=True, rename={"next_page": "continue"}):
    next_page: str = ""


class _Events(msgspec.Struct, frozen=True):
    metadata: _ListMetadata = _ListMetadata()
    items: tuple[KubeEvent, ...] | None = None


async def newest_events(
    client: LeaseClient, kind: str, key: ObjectName, *, count: int, within: float
) -> tuple[KubeEvent, ...]:
    """Return the `count` newest Events about the object, newest first. Raises ApiError.

    `within` is the limit of each request in seconds. A cluster without Events raises NotFound.
    """
    about = f"involvedObject.kind={kind},involvedObject.name={key.name}"
    path = PATH.format(segment(key.namespace or NODE_NAMESPACE))
    query = [("fieldSelector", about), ("limit", str(PAGE))]
    found: list[KubeEvent] = []
    token = ""
    for _ in range(MAX_PAGES):
        page = await client.read(
            path,
            _Events,
            "list of Events",
            query=[*query, ("continue", token)] if token else query,
            within=within,
            max_bytes=MAX_BODY,
        )
        found += page.items or ()
        token = page.metadata.next_page
        if not token:
            break
    found.sort(key=lambda one: one.at.timestamp() if one.at else 0.0, reverse=True)
    return tuple(found[:count])
