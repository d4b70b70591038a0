"""Read one Pod or one Node."""

from __future__ import annotations

from leases.domain.lease import ObjectName
from leases.kube.evidence.kube_objects import MAX_BODY, NodeObject, Pod
from leases.kube.lease_client import LeaseClient, segment


async def read_pod(client: LeaseClient, key: ObjectName, *, within: float) -> Pod:
    """Return the Pod. Raises ApiError: NotFound if it is gone, and where no Pods are served."""
    path = f"/api/v1/namespaces/{segment(key.namespace)}/pods/{segment(key.name)}"
    return await client.read(path, Pod, "Pod", query=(), within=within, max_bytes=MAX_BODY)


async def read_node(client: LeaseClient, name: str, *, within: float) -> NodeObject:
    """Return the Node. Raises ApiError, as `read_pod` does."""
    path = f"/api/v1/nodes/{segment(name)}"
    return await client.read(path, NodeObject, "Node", query=(), within=within, max_bytes=MAX_BODY)
