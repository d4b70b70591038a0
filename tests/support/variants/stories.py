"""What happens in made recordings: each story acts on a cluster and says what truly happened."""

from __future__ import annotations

from typing import Any

from tests.support.variants.api import Incident
from tests.support.variants.cluster import Cluster
from tests.support.variants.electors import Elector, Settings
from tests.support.variants.made import text
from tests.support.variants.workload import Workload

GAP = 60  # seconds in which the changes of one story end


def incident_on(cluster: Cluster, cause: str, *workloads: Workload, lasts: float = GAP) -> Incident:
    return cluster.api.incident(cause, [one.lease for one in workloads], lasts=lasts)


# -- one election


def graceful_stop(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "graceful_stop", one)
    one.leader.delete()


def rollout(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "rollout", one)
    one.roll_out()


def crash(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "crash", one)
    code = cluster.api.random.choice((1, 2, 139, 255))
    one.leader.end(code, back_after=_too_late(cluster, one))


def _too_late(cluster: Cluster, one: Workload) -> float:
    """Seconds after which a process comes back too late to take its Lease again."""
    return one.settings.duration + one.settings.retry * 3 + cluster.api.between(2, 15)


def oom_killed(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "oom_killed", one)
    pod = one.leader
    node = ("Node", "", pod.node)
    cluster.api.event(
        node, "OOMKilling", "Memory cgroup out of memory: Killed process 8", "kernel-monitor"
    )
    pod.end(137, back_after=_too_late(cluster, one))


def restart_in_place(cluster: Cluster, one: Workload) -> None:
    """The only replica dies and comes back."""
    incident_on(cluster, "restart_in_place", one)
    for pod in one.pods:
        if not pod.elector.leads:
            pod.elector.kill()
    pod = one.leader
    # A new process has another uuid; without one it must stay away until the Lease ran out.
    named = one.identity in ("uuid", "node")
    pod.end(1, back_after=2 if named else one.settings.duration + 5)


def evicted_for_memory(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "evicted", one)
    pod = one.leader
    about = "Node", "", pod.node
    cluster.api.event(
        about, "EvictionThresholdMet", "Attempting to reclaim memory", "kubelet", pod.node
    )
    pod.elector.kill()
    pod.obj["status"].update(
        phase="Failed", reason="Evicted", message="The node was low on resource: memory."
    )
    pod.condition("DisruptionTarget", "True", "TerminationByKubelet")
    pod.event("Evicted", "The node was low on resource: memory.")
    cluster.pods.pop((pod.namespace, pod.name))
    cluster.api.after(1, lambda: one.replace(pod))


def preempted(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "evicted", one)
    pod = one.leader
    pod.event(
        "Preempted",
        f"Preempted by pod {cluster.api.uuid()} on node {pod.node}",
        "default-scheduler",
    )
    pod.delete(disrupted="PreemptionByScheduler")


def descheduled(cluster: Cluster, one: Workload) -> None:
    """One Pod is evicted by the eviction API while its node takes others."""
    incident_on(cluster, "evicted", one)
    one.leader.delete(disrupted="EvictionByEvictionAPI")


def tainted(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "evicted", one)
    pod = one.leader
    pod.event(
        "TaintManagerEviction",
        f"Marking for deletion Pod {pod.namespace}/{pod.name}",
        "taint-eviction-controller",
    )
    pod.delete(disrupted="DeletionByTaintManager")


def starved(cluster: Cluster, one: Workload) -> None:
    """Its process gets ever less CPU, until it renews too late."""
    last = one.settings.duration + cluster.api.between(1, 4)
    steps = [last * part for part in (0.2, 0.32, 0.45, 0.58, 0.62)]
    lasts = sum(steps) + 3 * len(steps) + last + GAP
    incident_on(cluster, "starved", one, lasts=lasts)
    pod, at = one.leader, 0.0
    for step in (*steps, last):
        cluster.api.after(at, lambda step=step: pod.elector.freeze(step))  # type: ignore[misc]
        if step > 5:
            cluster.api.after(
                at + step,
                lambda: pod.event("Unhealthy", "Liveness probe failed: context deadline exceeded"),
            )
        at += step + one.settings.retry + 0.4


def partition(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "partition", one, lasts=110)
    one.leader.cut_for(one.settings.duration * 2.5)


def frozen(cluster: Cluster, one: Workload) -> None:
    """Its process stands still past the deadline, then goes on as if it still held."""
    incident_on(cluster, "partition", one, lasts=110)
    one.leader.elector.freeze(one.settings.duration * 2.2)


def scaled_down(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "scaled_down", one, lasts=150)
    one.scaled(f"Scaled down replica set {one.owner} to 0 from {one.replicas}")
    for pod in one.pods:
        about = one.kind, one.pods_in, one.owner
        cluster.api.event(
            about, "SuccessfulDelete", f"Deleted pod: {pod.name}", "replicaset-controller"
        )
        pod.delete(replace=False)


def flapping(cluster: Cluster, one: Workload) -> None:
    """Each replica crashes soon after it has acquired."""
    rounds = 4
    incident_on(cluster, "flapping", one, lasts=rounds * (one.settings.duration + 18))
    left = [rounds]

    def again() -> None:
        leader = [pod for pod in one.pods if pod.elector.leads and pod.elector.alive]
        if leader and left[0]:
            left[0] -= 1
            leader[0].end(2, back_after=17)
        if left[0]:
            cluster.api.after(3 if not leader else one.settings.duration + 4, again)

    again()


def standby_dies(cluster: Cluster, one: Workload) -> None:
    """No Lease changes: a decoy."""
    pod = next(pod for pod in one.pods if not pod.elector.leads)
    pod.end(137, back_after=2)


# -- by hand


def _lease(cluster: Cluster, one: Workload) -> Any:
    return cluster.api.objects["leases", one.settings.namespace, one.settings.name]


def theft(
    cluster: Cluster, one: Workload, manager: str = "kubectl-patch", operation: str = "Update"
) -> None:
    incident_on(cluster, "by_hand", one, lasts=one.settings.duration + GAP)
    spec = {"holderIdentity": cluster.api.random.choice(("debug-shell", "me", "admin-laptop"))}
    if cluster.api.random.random() < 0.5:
        spec["renewTime"] = spec["acquireTime"] = text(cluster.api.now)
    cluster.api.write_lease(_lease(cluster, one), spec, manager, operation)


def release(cluster: Cluster, one: Workload, manager: str = "kubectl-edit") -> None:
    incident_on(cluster, "by_hand", one)
    cluster.api.write_lease(_lease(cluster, one), {"holderIdentity": ""}, manager)


def release_by_form(cluster: Cluster, one: Workload) -> None:
    """As Leaseboard's form releases: like client-go, under its own manager."""
    incident_on(cluster, "by_hand", one)
    now = text(cluster.api.now)
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
    cluster.api.write_lease(_lease(cluster, one), spec, "leaseboard")


def annotate(cluster: Cluster, one: Workload, manager: str = "kubectl-annotate") -> None:
    incident_on(cluster, "by_hand", one, lasts=10)
    cluster.api.write_lease(_lease(cluster, one), {}, manager, annotations={"note": "look"})


def duration(cluster: Cluster, one: Workload, manager: str = "kubectl-patch") -> None:
    incident_on(cluster, "by_hand", one, lasts=20)
    cluster.api.write_lease(_lease(cluster, one), {"leaseDurationSeconds": 77}, manager)


def delete_lease(cluster: Cluster, one: Workload) -> None:
    incident_on(cluster, "by_hand", one)
    cluster.api.delete("leases", one.settings.namespace, one.settings.name)


def delete_heartbeat(cluster: Cluster) -> None:
    node = cluster.worker_names(1)[0]
    cluster.api.incident("by_hand", [f"kube-node-lease/{node}"], lasts=30)
    cluster.api.delete("leases", "kube-node-lease", node)


# -- other kinds of Lease


def lock(cluster: Cluster) -> None:
    """A lock is taken, and given back by deleting it."""
    node = cluster.worker_names(1)[0]
    cluster.api.incident("deleted", [f"medik8s-leases/node-{node}"], lasts=60)
    now = text(cluster.api.now)
    spec = {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600}
    meta = {"name": f"node-{node}", "namespace": "medik8s-leases"}
    kind = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
    times = {"acquireTime": now, "renewTime": now, "leaseTransitions": 0}
    cluster.api.create("leases", kind | {"metadata": meta, "spec": spec | times}, "manager")
    cluster.api.after(35, lambda: cluster.api.delete("leases", "medik8s-leases", f"node-{node}"))


def clock_skew(cluster: Cluster, ahead: bool) -> None:
    """A newcomer that trusts renewTime takes a Lease whose holder renewed on time."""
    first, second = cluster.worker_names(2)
    name = f"vip-{cluster.api.words(4)}"
    settings = Settings("edge", name, "vip-speaker", 15, 10, 3)
    Elector(cluster.api, settings, first, clock=0 if ahead else -90)

    def join() -> None:
        cluster.api.incident("clock_skew", [f"edge/{name}"], lasts=15)
        other = Elector(cluster.api, settings, second, clock=90 if ahead else 0)
        other.trusts_renew_time = True

    cluster.api.after(40, join)


def preferred_holder(cluster: Cluster) -> None:
    """The coordinator prefers a candidate; the holder yields to it."""
    api, name = cluster.api, f"coordinated-{cluster.api.words(4)}"
    spec: Any = {"holderIdentity": "cp-a_1", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    spec |= {
        "acquireTime": text(api.now),
        "renewTime": text(api.now),
        "strategy": "OldestEmulationVersion",
    }
    kind = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
    meta = {"name": name, "namespace": "kube-system"}
    lease = api.create("leases", kind | {"metadata": meta, "spec": spec}, "kube-apiserver")
    holder = ["cp-a_1"]

    def renew() -> None:
        if holder[0]:
            api.write_lease(lease, {"renewTime": text(api.now)}, "kube-scheduler")
        api.after(2, renew)

    def take(who: str) -> None:
        holder[0] = who
        now = text(api.now)
        times = {"acquireTime": now, "renewTime": now, "leaseDurationSeconds": 15}
        manager = "kube-apiserver" if who else "kube-scheduler"
        api.write_lease(lease, {"holderIdentity": who, "preferredHolder": None, **times}, manager)

    def prefer() -> None:
        api.incident("preferred_holder", [f"kube-system/{name}"], lasts=20)
        api.write_lease(lease, {"preferredHolder": "cp-b_2"}, "kube-apiserver")
        api.after(1.2, yield_to)

    def yield_to() -> None:
        holder[0] = ""
        now = text(api.now)
        freed = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
        }
        api.write_lease(lease, freed, "kube-scheduler")
        api.after(1.5, lambda: take("cp-b_2"))

    api.after(1, renew)
    api.after(38, prefer)
