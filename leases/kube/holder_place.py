"""Read where a holder runs: the Pod or the Node that its identity names, if the cluster shows them.

Source: k8s.io/api/core/v1/types.go (Pod, Node).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from leases.domain.holder_identity import split_holder
from leases.kube.lease_client import LeaseClient, segment
from leases.wire.status import Forbidden, NotFound

T = TypeVar("T")


class HolderPlace(msgspec.Struct, frozen=True):
    """`pod` and `node` are names, or "" where the cluster shows none."""

    pod: str = ""
    phase: str = ""
    node: str = ""
    node_ready: bool | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _NodeStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    status: _NodeStatus = _NodeStatus()


async def place_of(
    client: LeaseClient, namespace: str, identity: str, *, within: float
) -> HolderPlace | None:
    """Return where the holder runs; None if the cluster shows neither Pod nor Node of that name.

    The Pod is looked for in the namespace of the Lease. `within` is the limit of each request in
    seconds. Raises ApiError, but not for what the cluster does not serve or forbids.
    """
    host = split_holder(identity).host or identity
    path = f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(host)}"
    pod = await _read(client, path, _Pod, within)
    name = host if pod is None else pod.spec.node_name
    node = None
    if name:
        node = await _read(client, f"/api/v1/nodes/{segment(name)}", _Node, within)
    if pod is None and node is None:
        return None
    return HolderPlace(
        pod="" if pod is None else host,
        phase="" if pod is None else pod.status.phase,
        node=name,
        node_ready=None if node is None else _is_ready(node),
    )


def _is_ready(node: _Node) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)


async def _read(client: LeaseClient, path: str, shape: type[T], within: float) -> T | None:
    try:
        return await client.read(path, shape, "Pod or Node", query=(), within=within)
    except (Forbidden, NotFound):
        return None
