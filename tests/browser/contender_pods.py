"""Pods of contenders, written as a kubelet and the controllers would."""

from __future__ import annotations

from typing import Any

from tests.support.api_client import LeaseApi, timestamp

HASH = "5ln7kvmbd"
_PODS = "/api/v1/namespaces/default/pods"
_MERGE = "application/merge-patch+json"


class ContenderPods:
    """What the cluster says of the contenders, as it happens to them."""

    def __init__(self, api: LeaseApi) -> None:
        self._api = api
        self._nodes = 0

    def start(self, name: str) -> None:
        """It runs on a node of its own."""
        program, self._nodes = name.partition(f"-{HASH}")[0], self._nodes + 1
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp()}
        node = {
            "metadata": {"name": f"worker-{self._nodes}"},
            "status": {"conditions": [ready]},
        }
        self._api.send("POST", "/api/v1/nodes", node)
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{program}-{HASH}",
            "uid": f"uid-{program}",
            "controller": True,
        }
        meta = {
            "name": name,
            "labels": {"pod-template-hash": HASH},
            "ownerReferences": [owner],
            "finalizers": ["example.com/runs"],  # stands in for the grace period
        }
        containers = [{"name": "main", "image": "demo:1"}]
        spec = {"nodeName": f"worker-{self._nodes}", "containers": containers}
        self._api.send("POST", _PODS, {"metadata": meta, "spec": spec})
        self._report(name, {"running": {"startedAt": timestamp()}}, {}, restarts=0)

    def delete(self, name: str) -> None:
        """It is to end; it stays until its process has."""
        self._api.send("DELETE", f"{_PODS}/{name}")
        self._tell(name, "Killing", "Stopping container main")

    def remove(self, name: str) -> None:
        self._api.send("PATCH", f"{_PODS}/{name}", {"metadata": {"finalizers": None}}, _MERGE)

    def fail(self, name: str, reason: str, exit_code: int) -> None:
        ended = {"reason": reason, "exitCode": exit_code, "finishedAt": timestamp()}
        waits = {"waiting": {"reason": "CrashLoopBackOff"}}
        self._report(name, waits, {"terminated": ended}, restarts=1)
        self._tell(name, "BackOff", "Back-off restarting failed container main")

    def _report(
        self, name: str, state: dict[str, Any], last: dict[str, Any], *, restarts: int
    ) -> None:
        container = {"name": "main", "restartCount": restarts, "state": state, "lastState": last}
        status = {"phase": "Running", "containerStatuses": [container]}
        self._api.send("PATCH", f"{_PODS}/{name}/status", {"status": status}, _MERGE)

    def _tell(self, name: str, reason: str, message: str) -> None:
        event = {
            "metadata": {"generateName": f"{name}."},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": name},
            "reason": reason,
            "message": message,
            "lastTimestamp": timestamp(),
            "source": {"component": "kubelet"},
        }
        self._api.send("POST", "/api/v1/namespaces/default/events", event)
