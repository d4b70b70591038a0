"""Read where a holder runs: the Pod or the Node that its identity names, if they can be read."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from leases.domain.holder_identity import split_holder
from leases.domain.lease import ObjectName
from leases.kube.evidence.pods_and_nodes import read_node, read_pod
from leases.kube.lease_client import LeaseClient
from leases.wire.status import Forbidden, NotFound

T = TypeVar("T")


class HolderPlace(msgspec.Struct, frozen=True):
    """`pod` and `node` are names, or "" where the cluster shows none."""

    pod: str = ""
    phase: str = ""
    node: str = ""
    node_ready: bool | None = None


async def place_of(
    client: LeaseClient, namespace: str, identity: str, *, within: float
) -> HolderPlace | None:
    """Return where the holder runs; None if the cluster shows neither Pod nor Node of that name.

    The Pod is looked for in the namespace of the Lease. `within` is the limit of each request in
    seconds. Raises ApiError, but not for what the cluster does not serve or forbids.
    """
    host = split_holder(identity).host or identity
    pod = await _unless_refused(read_pod(client, ObjectName(namespace, host), within=within))
    name = host if pod is None else pod.spec.node_name
    node = None
    if name:
        node = await _unless_refused(read_node(client, name, within=within))
    if pod is None and node is None:
        return None
    return HolderPlace(
        pod="" if pod is None else host,
        phase="" if pod is None else pod.status.phase,
        node=name,
        node_ready=None if node is None else node.ready is not None and node.ready.status == "True",
    )


async def _unless_refused(reading: Awaitable[T]) -> T | None:
    try:
        return await reading
    except (Forbidden, NotFound):
        return None
