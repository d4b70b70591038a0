"""Nodes, and what happens to them and to the Pods that run there."""

from __future__ import annotations

from typing import Any

from tests.support.variants.api import Api, Object
from tests.support.variants.electors import Kubelet
from tests.support.variants.workload import Pod, condition_of


class Cluster:
    """A cluster that makes what its watches show."""

    def __init__(self, seed: int | str, *, workers: int = 12, nodes: Any = None) -> None:
        self.api = Api(seed)
        self.clocks: dict[str, float] = {}  # seconds that a node's clock is ahead
        self.pods: dict[tuple[str, str], Pod] = {}
        self.nodes: dict[str, Object] = {}
        self.kubelets: dict[str, Kubelet] = {}
        name = nodes or self._naming()
        for number in range(workers):
            self.add_node(name(number))

    def _naming(self) -> Any:
        """One of the ways in which clouds and installers name nodes."""
        words, pool = self.api.words, self.api.words(6)
        styles = (
            lambda n: f"ip-10-0-{n % 7}-{n + 11}.eu-west-1.compute.internal",
            lambda _: f"gke-prod-pool-1-{pool}-{words(4)}",
            lambda n: f"aks-nodepool1-{pool}-vmss{n:06d}",
            lambda _: f"talos-{words(3)}-{words(3)}",
            lambda n: f"node{n}",
            lambda _: f"{pool}-md-0-{words(5)}-{words(5)}",
            lambda n: f"k8s-{n}.example.com",
        )
        return self.api.random.choice(styles)

    def when_up(self, do: Any) -> None:
        api = self.api
        if api.up:
            do()
        else:
            api.after((api.down_until - api.now).total_seconds() + api.between(0.1, 2), do)

    def add_node(self, name: str) -> None:
        ready = condition_of("Ready", "True", "KubeletReady") | {
            "lastTransitionTime": self.api.second()
        }
        obj = {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "spec": {},
            "status": {"conditions": [ready]},
        }
        self.nodes[name] = self.api.create("nodes", obj)
        self.kubelets[name] = Kubelet(self.api, name, obj["metadata"]["uid"])

    def worker_names(self, count: int) -> list[str]:
        return self.api.random.sample(list(self.nodes), min(count, len(self.nodes)))

    def free_node(self, other_than: str) -> str:
        ready = [
            name
            for name, node in self.nodes.items()
            if name != other_than
            and self.kubelets[name].alive
            and not node["spec"].get("unschedulable")
        ]
        return self.api.random.choice(ready)

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node == node]

    # -- what happens to nodes

    def node_ready(self, name: str, status: str, reason: str) -> None:
        node = self.nodes.get(name)
        if node is None:
            return
        ready = condition_of("Ready", status, reason) | {"lastTransitionTime": self.api.second()}
        node["status"]["conditions"] = [ready]
        self.api.change("nodes", node)
        state = "NodeReady" if status == "True" else "NodeNotReady"
        about = "Node", "", name
        self.api.event(about, state, f"Node {name} status is now: {state}", "node-controller")

    def node_down(self, name: str, *, deleted_after: float | None = None) -> None:
        """It loses power; the node controller sees it 40 to 50 s later."""
        self.kubelets[name].alive = False
        pods = self.pods_on(name)
        for pod in pods:
            pod.elector.kill()

        def not_ready() -> None:
            if name in self.nodes and not self.kubelets[name].alive:
                self.node_ready(name, "Unknown", "NodeStatusUnknown")
                for pod in pods:
                    pod.condition("Ready", "False")
                    pod.event("NodeNotReady", "Node is not ready", "node-controller")

        self.api.after(self.api.between(40, 50), not_ready)
        if deleted_after is not None:
            self.api.after(deleted_after, lambda: self.delete_node(name))

    def delete_node(self, name: str) -> None:
        """The cloud's controller deletes the Node of an instance that is gone, and its Pods go."""
        self.api.event(
            ("Node", "", name),
            "DeletingNode",
            f"Deleting node {name}",
            "cloud-node-lifecycle-controller",
        )
        self.api.delete("nodes", "", name)
        self.nodes.pop(name, None)
        for pod in self.pods_on(name):
            self.api.delete("pods", pod.namespace, pod.name)
            self.pods.pop((pod.namespace, pod.name))
            self.api.after(1, lambda pod=pod: pod.workload.replace(pod))  # type: ignore[misc]
        self.api.after(1, lambda: self.api.delete("leases", "kube-node-lease", name))

    def node_back(self, name: str, *, rebooted: bool) -> None:
        """It comes back; after a reboot each container is a new process."""
        uid = self.nodes[name]["metadata"]["uid"]
        self.kubelets[name] = Kubelet(self.api, name, uid, delay=0.5)
        self.node_ready(name, "True", "KubeletReady")
        if rebooted:
            self.api.event(
                ("Node", "", name), "Rebooted", f"Node {name} has been rebooted", "kubelet", name
            )
        for pod in self.pods_on(name):
            pod.end(255, reason="Unknown", back_after=self.api.between(1, 4))

    def partition(self, name: str, seconds: float) -> None:
        """The network of a node is cut; what runs there goes on."""
        self.kubelets[name].cut_for(seconds)
        for pod in self.pods_on(name):
            pod.cut_for(seconds)
        if seconds > 50:
            self.api.after(45, lambda: self.node_ready(name, "Unknown", "NodeStatusUnknown"))
            self.api.after(seconds + 3, lambda: self.node_ready(name, "True", "KubeletReady"))

    def cordon(self, name: str) -> None:
        self.nodes[name]["spec"]["unschedulable"] = True
        self.api.change("nodes", self.nodes[name])
        about = "Node", "", name
        self.api.event(
            about,
            "NodeNotSchedulable",
            f"Node {name} status is now: NodeNotSchedulable",
            "kubelet",
            name,
        )

    def drain(self, name: str) -> None:
        self.cordon(name)
        for pod in self.pods_on(name):
            pod.delete(disrupted="EvictionByEvictionAPI", stops_after=self.api.between(0.3, 5))
