"""Nodes and Events of the demo's processes. An API that serves none of them needs none."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from leases.demo.demo_client import DemoApi, LeaseObject
from leases.demo.names import NODES
from leases.domain.lease import ObjectName
from leases.wire.microtime import format_time

MINE = {"app.kubernetes.io/managed-by": "leaseboard-demo"}
_ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
_MACHINE = {
    "kubeletVersion": "v1.36.0",
    "osImage": "Debian GNU/Linux 12 (bookworm)",
    "kernelVersion": "6.1.0-25-amd64",
    "containerRuntimeVersion": "containerd://2.0.0",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


def _now() -> str:
    return format_time(datetime.now(UTC))


async def record(api: DemoApi, about: dict[str, str], reason: str, message: str) -> None:
    """Write an Event as client-go's EventRecorder does."""
    now, namespace = _now(), about.get("namespace") or "default"
    name = f"{about['name']}.{time.time_ns():x}"
    event = {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning" if reason in ("NodeNotReady", "BackOff") else "Normal",
        "source": {"component": api.program},
        "reportingComponent": api.program,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    await api.write("POST", f"/api/v1/namespaces/{namespace}/events", event)


async def record_election(
    api: DemoApi, lease: ObjectName, lease_uid: str, identity: str, what: str
) -> None:
    """Source: k8s.io/client-go/tools/leaderelection/resourcelock/leaselock.go (RecordEvent)."""
    about = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "namespace": lease.namespace,
        "name": lease.name,
        "uid": lease_uid,
    }
    await record(api, about, "LeaderElection", f"{identity} {what}")


class DemoNode:
    """A Node: its kubelet registers it, and the node controller says when it fell silent."""

    def __init__(self, name: str, *, api: DemoApi) -> None:
        self._name = name
        self._kubelet = api.acting_as("kubelet")
        self._controller = api.acting_as("kube-controller-manager")

    async def register(self) -> str:
        """Create the Node if it is missing. Return its uid, or "" without Nodes."""
        status = {"nodeInfo": _MACHINE, **_ready(reports=True)}
        body = {"metadata": {"name": self._name, "labels": self._labels()}, "status": status}
        found = await self._kubelet.write("POST", "/api/v1/nodes", body)
        if found is None:
            found = await self._kubelet.write("GET", f"/api/v1/nodes/{self._name}")
            await self._report(self._kubelet, reports=True)
        uid: str = (found or {}).get("metadata", {}).get("uid", "")
        return uid

    def _labels(self) -> dict[str, str]:
        labels = {"kubernetes.io/hostname": self._name}
        if self._name.startswith("control-plane"):
            number = int(self._name[-1])
            labels["node-role.kubernetes.io/control-plane"] = ""
        else:
            number = NODES.index(self._name)
            labels["karpenter.sh/nodepool"] = "batch" if number % 4 == 3 else "general"
        return MINE | labels | {"topology.kubernetes.io/zone": _ZONES[number % len(_ZONES)]}

    async def fall_silent(self) -> None:
        await self._report(self._controller, reports=False)
        await self._record_event(self._controller, "NodeNotReady")

    async def come_back(self) -> None:
        await self._report(self._kubelet, reports=True)
        await self._record_event(self._kubelet, "NodeReady")

    async def _report(self, api: DemoApi, *, reports: bool) -> None:
        path = f"/api/v1/nodes/{self._name}/status"
        await api.write("PATCH", path, {"status": _ready(reports=reports)})

    async def _record_event(self, api: DemoApi, reason: str) -> None:
        about = {"kind": "Node", "name": self._name, "uid": self._name}
        await record(api, about, reason, f"Node {self._name} status is now: {reason}")


def _ready(*, reports: bool) -> LeaseObject:
    """A Node status: ready, or unknown because its kubelet stopped posting."""
    now = _now()
    condition: dict[str, Any] = {
        "type": "Ready",
        "status": "True" if reports else "Unknown",
        "reason": "KubeletReady" if reports else "NodeStatusUnknown",
        "message": (
            "kubelet is posting ready status" if reports else "Kubelet stopped posting node status."
        ),
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {"conditions": [condition]}
