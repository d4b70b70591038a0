"""Stories that many elections take part in, as `stories` has them of one."""

from __future__ import annotations

from typing import Any

from tests.support.variants.cluster import Cluster
from tests.support.variants.stories import incident_on
from tests.support.variants.workload import Workload


def node_down(cluster: Cluster, node: str, *, deleted: bool = False) -> None:
    held = [pod.workload.lease for pod in cluster.pods_on(node) if pod.elector.leads]
    cluster.api.incident("node_down", [*held, f"kube-node-lease/{node}"], lasts=150)
    cluster.node_down(node, deleted_after=70 if deleted else None)


def node_rebooted(cluster: Cluster, node: str) -> None:
    held = [pod.workload.lease for pod in cluster.pods_on(node) if pod.elector.leads]
    cluster.api.incident("node_down", [*held, f"kube-node-lease/{node}"], lasts=150)
    cluster.node_down(node)
    cluster.api.after(75, lambda: cluster.node_back(node, rebooted=True))


def node_cut_off(cluster: Cluster, node: str) -> None:
    held = [pod.workload.lease for pod in cluster.pods_on(node) if pod.elector.leads]
    cluster.api.incident("partition", [*held, f"kube-node-lease/{node}"], lasts=170)
    cluster.partition(node, 80)


def drain(cluster: Cluster, node: str) -> None:
    held = [pod.workload.lease for pod in cluster.pods_on(node) if pod.elector.leads]
    cluster.api.incident("drain", held, lasts=100)
    cluster.drain(node)


def busiest(cluster: Cluster) -> str:
    """The node whose Pods hold most."""
    return max(
        cluster.nodes, key=lambda node: sum(pod.elector.leads for pod in cluster.pods_on(node))
    )


def api_outage(cluster: Cluster, seconds: float, *, watch_breaks: bool = True) -> None:
    cluster.api.incident("api_outage", "all", lasts=seconds + 90)
    cluster.api.outage(seconds, watch_breaks=watch_breaks)


def api_slow(cluster: Cluster, leases: Any) -> None:
    """The API server stands still for seconds, again and again."""
    if leases:
        cluster.api.incident("api_slow", leases, lasts=130)
    at = 0.0
    for _ in range(12):
        stalled = cluster.api.between(1, 4.5 if not leases else 6.5)
        cluster.api.after(at, lambda stalled=stalled: cluster.api.stall(stalled))  # type: ignore[misc]
        at += stalled + cluster.api.between(1, 5)


def rollout_of_all(cluster: Cluster, workloads: list[Workload]) -> None:
    incident_on(cluster, "rollout", *workloads, lasts=90)
    for one in workloads:
        cluster.api.after(cluster.api.between(0, 15), one.roll_out)


def namespace_deleted(cluster: Cluster, namespace: str, workloads: list[Workload]) -> None:
    """Everything in it goes: Pods end, Leases are deleted."""
    mine = [one for one in workloads if one.settings.namespace == namespace]
    incident_on(cluster, "deleted", *mine, lasts=60)
    for one in mine:
        for pod in one.pods:
            pod.delete(replace=False)

    def delete() -> None:
        for one in mine:
            cluster.api.delete("leases", namespace, one.settings.name)

    cluster.api.after(cluster.api.between(4, 8), delete)
