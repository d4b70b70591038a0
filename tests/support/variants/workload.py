"""Pods and the workloads that own them, as their controllers and kubelets write them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.support.variants.api import Object
from tests.support.variants.electors import Elector, Settings

if TYPE_CHECKING:
    from tests.support.variants.cluster import Cluster

REASONS = {0: "Completed", 137: "OOMKilled"}


class Pod:
    """One Pod with one container that contends for its workload's Lease."""

    def __init__(self, cluster: Cluster, workload: Workload, name: str, node: str) -> None:
        self.cluster, self.workload, self.name, self.node = cluster, workload, name, node
        self.uid = cluster.api.uuid()
        self.began = cluster.api.second()  # its container
        self.restarts = 0
        self.cut_until = cluster.api.now
        self.obj = cluster.api.create("pods", self._object(running=True))
        self.elector = self._start()

    @property
    def namespace(self) -> str:
        return self.workload.pods_in

    @property
    def about(self) -> tuple[str, str, str]:
        return "Pod", self.namespace, self.name

    def event(self, reason: str, message: str, component: str = "kubelet") -> None:
        host = self.node if component == "kubelet" else ""
        self.cluster.api.event(self.about, reason, message, component, host)

    def _start(self, identity: str = "") -> Elector:
        api, style = self.cluster.api, self.workload.identity
        names = {
            "uuid": f"{self.name}_{api.uuid()}",
            "pod": self.name,
            "node": f"{self.node}_{api.uuid()}",
            "node only": self.node,
        }
        elector = Elector(api, self.workload.settings, identity or names[style], self.clock)
        elector.lost = self._lost
        elector.cut_until = self.cut_until
        return elector

    def cut_for(self, seconds: float) -> None:
        self.cut_until = self.cluster.api.now + timedelta(seconds=seconds)
        self.elector.cut_until = self.cut_until

    @property
    def clock(self) -> float:
        return self.cluster.clocks.get(self.node, 0)

    def _lost(self) -> None:
        """Most programs end when they lose their lead; the kubelet starts them again."""
        if self.workload.again:
            self.elector = self._start(self.elector.identity)
        else:
            self.end(1, back_after=self.cluster.api.between(1, 3))

    def _object(self, *, running: bool) -> Object:
        workload, now = self.workload, self.cluster.api.second()
        owner, labels = workload.owner_and_labels(self.node)
        if not workload.labelled:
            labels.pop("controller-revision-hash", None)
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "uid": self.uid,
                "labels": labels,
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": self.node, "containers": [{"name": "manager"}]},
            "status": {
                "phase": "Running",
                "conditions": [
                    condition_of("Ready", "True") | {"lastTransitionTime": now},
                    condition_of("PodScheduled", "True"),
                ],
                "startTime": now,
                "containerStatuses": [
                    {
                        "name": "manager",
                        "restartCount": 0,
                        "state": {"running": {"startedAt": now}},
                        "lastState": {},
                    }
                ],
            },
        }

    @property
    def container(self) -> Object:
        found: Object = self.obj["status"]["containerStatuses"][0]
        return found

    # -- what happens to it

    def end(
        self, code: int, *, back_after: float | None, reason: str = "", identity: str = ""
    ) -> None:
        """Its process ends; the kubelet starts another one after so many seconds."""
        api = self.cluster.api
        self.elector.kill()
        self.restarts += 1
        ended = {
            "terminated": {
                "exitCode": code,
                "reason": reason or REASONS.get(code, "Error"),
                "startedAt": self.began,
                "finishedAt": api.second(),
            }
        }
        if back_after is not None and back_after >= 8:
            waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}
            state, last = {"waiting": waiting}, ended
        else:
            state, last = ended, {}
        self._status(state, last, restarts=self.restarts)
        if "waiting" in state:
            self.event("BackOff", "Back-off restarting failed container manager")
        if back_after is not None:
            api.after(back_after, lambda: self._back(ended, identity))

    def _status(self, state: Object, last: Object, restarts: int) -> None:
        def write() -> None:
            if ("pods", self.namespace, self.name) in self.cluster.api.objects:
                self.container.update(state=state, lastState=last, restartCount=restarts)
                self.cluster.api.change("pods", self.obj)

        if self.cluster.kubelets[self.node].cut_until > self.cluster.api.now:
            left = self.cluster.kubelets[self.node].cut_until - self.cluster.api.now
            self.cluster.api.after(left.total_seconds() + 0.5, write)
        else:
            self.cluster.when_up(write)

    def _back(self, ended: Object, identity: str) -> None:
        if self.cluster.pods.get((self.namespace, self.name)) is not self:
            return
        self.began = self.cluster.api.second()
        running = {"running": {"startedAt": self.began}}
        self._status(running, ended, self.restarts)
        self.event("Started", "Started container manager")
        self.elector = self._start(identity)

    def mark_deleted(self, grace: float = 30) -> None:
        at = self.cluster.api.now + timedelta(seconds=grace)
        self.obj["metadata"]["deletionTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.obj["metadata"]["deletionGracePeriodSeconds"] = int(grace)
        self.cluster.api.change("pods", self.obj)

    def delete(
        self, *, replace: bool = True, disrupted: str = "", stops_after: float = 0.5
    ) -> None:
        """Delete it gracefully: the kubelet stops its process, then removes it."""
        api = self.cluster.api
        if disrupted:
            self.condition("DisruptionTarget", "True", disrupted)
        self.mark_deleted()
        self.cluster.pods.pop((self.namespace, self.name), None)

        def stop() -> None:
            self.event("Killing", "Stopping container manager")
            self.elector.stop()
            api.after(api.between(0.5, 2), gone)

        def gone() -> None:
            api.delete("pods", self.namespace, self.name)
            if replace:
                api.after(api.between(0.3, 1.5), lambda: self.workload.replace(self))

        api.after(stops_after + api.between(0, 0.4), stop)

    def condition(self, kind: str, status: str, reason: str = "") -> None:
        conditions = self.obj["status"]["conditions"]
        conditions[:] = [one for one in conditions if one["type"] != kind]
        since = {"lastTransitionTime": self.cluster.api.second()}
        conditions.append(condition_of(kind, status, reason) | since)
        self.cluster.api.change("pods", self.obj)


class Workload:
    """A Deployment, StatefulSet, DaemonSet, or static Pods, with one election."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        settings: Settings,
        *,
        kind: str = "ReplicaSet",
        identity: str = "uuid",
        replicas: int = 2,
        pods_in: str = "",
        nodes: list[str] | None = None,
        again: bool = False,
    ) -> None:
        self.cluster, self.name, self.settings = cluster, name, settings
        self.kind, self.identity, self.again = kind, identity, again
        self.labelled = True  # its Pods tell their revision
        self.pods_in = pods_in or settings.namespace
        self.hash = cluster.api.words(cluster.api.random.choice((9, 10)))
        self.uid = cluster.api.uuid()
        self._nodes = nodes or cluster.worker_names(replicas)
        self.replicas = replicas
        for number in range(replicas):
            self.add(number, self._nodes[number % len(self._nodes)])

    @property
    def owner(self) -> str:
        return f"{self.name}-{self.hash}" if self.kind == "ReplicaSet" else self.name

    def owner_and_labels(self, node: str) -> tuple[Object, Object]:
        label = {
            "ReplicaSet": {"pod-template-hash": self.hash},
            "StatefulSet": {"controller-revision-hash": f"{self.name}-{self.hash}"},
            "DaemonSet": {"controller-revision-hash": self.hash},
        }.get(self.kind, {})
        owner = node if self.kind == "Node" else self.owner
        reference = {"apiVersion": "apps/v1", "kind": self.kind, "name": owner, "uid": self.uid}
        return reference | {"controller": True}, {"app.kubernetes.io/name": self.name} | label

    def add(self, number: int, node: str) -> Pod:
        api = self.cluster.api
        ends = {"StatefulSet": str(number), "Node": node}
        name = f"{self.owner}-{ends.get(self.kind) or api.words(5)}"
        pod = Pod(self.cluster, self, name, node)
        self.cluster.pods[pod.namespace, name] = pod
        return pod

    def replace(self, old: Pod) -> None:
        node = old.node if self.kind in ("DaemonSet", "Node") else self.cluster.free_node(old.node)
        number = old.name.rpartition("-")[2]
        pod = self.add(int(number) if self.kind == "StatefulSet" else 0, node)
        pod.event("Started", "Started container manager")
        self.created(pod)

    def created(self, pod: Pod) -> None:
        about, component = (self.kind, self.pods_in, self.owner), f"{self.kind.lower()}-controller"
        self.cluster.api.event(about, "SuccessfulCreate", f"Created pod: {pod.name}", component)

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.cluster.pods.values() if pod.workload is self]

    @property
    def leader(self) -> Pod:
        return next(pod for pod in self.pods if pod.elector.leads and pod.elector.alive)

    @property
    def lease(self) -> str:
        return self.settings.lease

    def scaled(self, message: str) -> None:
        about = "Deployment", self.pods_in, self.name
        self.cluster.api.event(about, "ScalingReplicaSet", message, "deployment-controller")

    def roll_out(self) -> None:
        """Make the Pods anew, one after another, as the Deployment or StatefulSet does."""
        api, old = self.cluster.api, self.pods
        self.hash = api.words(len(self.hash))
        if self.kind == "ReplicaSet":
            self.scaled(f"Scaled up replica set {self.owner} to 1")
        leader = [pod for pod in old if pod.elector.leads]
        at = 0.0
        for pod in [*(one for one in old if one not in leader), *leader]:
            at += api.between(2, 4)
            if self.kind == "ReplicaSet":
                api.after(at - 1.5, lambda: self.created(self.add(0, self.cluster.free_node(""))))
            api.after(at, lambda pod=pod: pod.delete(replace=self.kind != "ReplicaSet"))  # type: ignore[misc]


def condition_of(kind: str, status: str, reason: str = "") -> Object:
    return {"type": kind, "status": status} | ({"reason": reason} if reason else {})
