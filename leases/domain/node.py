"""What a cluster reports about its Nodes, shown beside their heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec

# A Node turns NotReady after node-monitor-grace-period, 50 s by default.
NOT_READY_GRACE = timedelta(seconds=60)
# The newer label comes first. Sources: kubernetes.io/docs/reference/labels-annotations-taints, and
# each provider's documentation of its node pools.
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node-pool.gke.io/name",
    "worker.gardener.cloud/pool",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/instance-type",  # where there is no pool: machines of one type
)


class Node(msgspec.Struct, frozen=True, gc=False):
    """One Node: `ready` is its condition, if reported."""

    name: str
    ready: bool | None = None
    zone: str = ""
    pool: str = ""


def first_label(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first of these labels that is set, or ""."""
    return next((labels[name] for name in names if labels.get(name)), "")
