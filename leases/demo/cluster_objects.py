"""Nodes, Pods and Events of the demo's processes. An API that serves none of them needs none."""

from __future__ import annotations

import time
import zlib
from datetime import UTC, datetime
from ipaddress import IPv4Address
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


async def forget_pods(api: DemoApi, namespace: str) -> None:
    """Delete the Pods that an earlier run left."""
    selector = ",".join(f"{name}={value}" for name, value in MINE.items())
    await api.write("DELETE", f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")


async def record(
    api: DemoApi, about: dict[str, str], reason: str, message: str, component: str
) -> None:
    """Write an Event as client-go's EventRecorder does."""
    now, namespace = _now(), about.get("namespace") or "default"
    name = f"{about['name']}.{time.time_ns():x}"
    event = {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning" if reason == "NodeNotReady" else "Normal",
        "source": {"component": component},
        "reportingComponent": component,
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
    await record(api, about, "LeaderElection", f"{identity} {what}", lease.name)


class DemoNode:
    """A Node: its kubelet registers it, and the node controller says when it fell silent."""

    def __init__(self, name: str, *, api: DemoApi) -> None:
        self._name = name
        self._api = api

    async def register(self) -> str:
        """Create the Node if it is missing. Return its uid, or "" without Nodes."""
        status = {"nodeInfo": _MACHINE, **_ready(reports=True)}
        body = {"metadata": {"name": self._name, "labels": self._labels()}, "status": status}
        found = await self._api.write("POST", "/api/v1/nodes", body)
        if found is None:
            found = await self._api.write("GET", f"/api/v1/nodes/{self._name}")
            await self._report(reports=True)
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
        await self._report(reports=False)
        await self._tell("NodeNotReady", "node-controller")

    async def come_back(self) -> None:
        await self._report(reports=True)
        await self._tell("NodeReady", "kubelet")

    async def _report(self, *, reports: bool) -> None:
        path = f"/api/v1/nodes/{self._name}/status"
        await self._api.write("PATCH", path, {"status": _ready(reports=reports)})

    async def _tell(self, reason: str, component: str) -> None:
        about = {"kind": "Node", "name": self._name, "uid": self._name}
        message = f"Node {self._name} status is now: {reason}"
        await record(self._api, about, reason, message, component)


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


class DemoPod:
    """The Pod of one process of an election."""

    def __init__(self, namespace: str, name: str, node: str, *, api: DemoApi) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._name = name
        self._number = zlib.crc32(name.encode())
        self._node = node or NODES[self._number % len(NODES)]
        self._api = api

    async def start(self) -> None:
        spec = {"nodeName": self._node, "containers": [{"name": "main", "image": "demo:1"}]}
        body = {"metadata": {"name": self._name, "labels": MINE}, "spec": spec}
        if await self._api.write("POST", self._path, body) is None:
            return
        now = _now()
        container = {
            "name": "main",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        status = {
            "phase": "Running",
            "podIP": str(IPv4Address(0x0A000000 | self._number & 0xFFFFFF)),
            "startTime": now,
            "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        await self._api.write("PATCH", f"{self._path}/{self._name}/status", {"status": status})

    async def stop(self) -> None:
        await self._api.write("DELETE", f"{self._path}/{self._name}")
