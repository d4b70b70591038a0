"""Nodes, Pods and Events of the demo's processes. An API without them needs none."""

import time
import zlib
from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import msgspec

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


# It keeps a deleted Pod until its process has ended: the embedded API has no grace periods.
_RUNS = "demo.example.com/runs"
_LABELS = {"ReplicaSet": "pod-template-hash", "StatefulSet": "controller-revision-hash"}


class PodName(msgspec.Struct, frozen=True):
    """Where a Pod is, and who owns it; `revision` is that of its template."""

    namespace: str
    name: str
    node: str
    owner_kind: str
    owner_name: str
    revision: str


class DemoPod:
    """The Pod of one contender. An API without Pods needs none."""

    def __init__(self, place: PodName, *, api: DemoApi) -> None:
        self._place = place
        self._path = f"/api/v1/namespaces/{place.namespace}/pods"
        self._kubelet = api.acting_as("kubelet")
        self._controller = api.acting_as("kube-controller-manager")
        self._started_at = ""
        self._last: dict[str, Any] = {}  # the last state of its container
        self._restarts = 0
        self._runs = False

    async def start(self) -> None:
        place = self._place
        owner = {
            "apiVersion": "v1" if place.owner_kind == "Node" else "apps/v1",
            "kind": place.owner_kind,
            "name": place.owner_name,
            "uid": str(uuid5(NAMESPACE_DNS, place.owner_name)),
            "controller": True,
        }
        label = _LABELS.get(place.owner_kind)
        meta = {
            "name": place.name,
            "labels": MINE | ({label: place.revision} if label else {}),
            "finalizers": [_RUNS],
            "ownerReferences": [owner],
        }
        spec = {"nodeName": place.node, "containers": [{"name": "main", "image": "demo:1"}]}
        body = {"metadata": meta, "spec": spec}
        if await self._controller.write("POST", self._path, body) is None:
            return
        number = zlib.crc32(place.name.encode())
        status = {
            "podIP": str(IPv4Address(0x0A000000 | number & 0xFFFFFF)),
            "startTime": _now(),
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        await self._run(status)

    async def delete(self) -> None:
        """Mark the Pod as deleted; its process shall end now."""
        await self._controller.write("DELETE", f"{self._path}/{self._place.name}")
        await self._record_event("Killing", "Stopping container main")

    async def remove(self) -> None:
        """Its process has ended: let the deleted Pod go."""
        await let_go(self._kubelet, self._place.namespace, self._place.name)

    async def fail(self, reason: str, exit_code: int) -> None:
        """Its container ended by itself, and waits to be started again."""
        self._end(reason, exit_code)
        await self._report({"waiting": {"reason": "CrashLoopBackOff"}}, {}, ready=False)
        text = f"Back-off restarting failed container main in pod {self._place.name}"
        await self._record_event("BackOff", text)

    async def restart(self) -> None:
        """Start the container again; of one that its machine took along, nobody knows the end."""
        if self._runs:
            self._end("Unknown", 255)
        self._restarts += 1
        await self._run({})

    def _end(self, reason: str, exit_code: int) -> None:
        ended = {"reason": reason, "exitCode": exit_code, "finishedAt": _now()}
        if self._started_at:
            ended["startedAt"] = self._started_at
        self._last, self._runs = {"terminated": ended}, False

    async def _run(self, status: dict[str, Any]) -> None:
        self._started_at, self._runs = _now(), True
        await self._report({"running": {"startedAt": self._started_at}}, status, ready=True)
        await self._record_event("Started", "Started container main")

    async def _report(self, state: dict[str, Any], status: dict[str, Any], *, ready: bool) -> None:
        container = {
            "name": "main",
            "ready": ready,
            "restartCount": self._restarts,
            "state": state,
            "lastState": self._last,
        }
        body = {"status": {"phase": "Running", "containerStatuses": [container], **status}}
        await self._kubelet.write("PATCH", f"{self._path}/{self._place.name}/status", body)

    async def _record_event(self, reason: str, message: str) -> None:
        about = {"kind": "Pod", "namespace": self._place.namespace, "name": self._place.name}
        await record(self._kubelet, about, reason, message)


async def forget_pods(api: DemoApi, namespace: str) -> None:
    """Delete the Pods that an earlier run left."""
    selector = ",".join(f"{name}={value}" for name, value in MINE.items())
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
    found = await api.write("GET", path)
    await api.write("DELETE", path)
    for pod in (found or {}).get("items") or ():
        await let_go(api, namespace, pod["metadata"]["name"])


async def let_go(api: DemoApi, namespace: str, name: str) -> None:
    """Take the finalizer from a deleted Pod, so that it vanishes."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    await api.write("PATCH", path, {"metadata": {"finalizers": None}})
