"""Stories of classes of incidents that rules once missed or invented, one world for each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.variants.cluster import Cluster
from tests.support.variants.electors import Settings
from tests.support.variants.made import Made
from tests.support.variants.stories import incident_on
from tests.support.variants.workload import Pod, Workload
from tests.support.variants.worlds import cluster_of, control_plane, workload


def _one(cluster: Cluster, **given: Any) -> Workload:
    """One more workload, after it has led for a while."""
    found = workload(cluster, "chosen", **given)
    cluster.api.run(60)
    return found


def cut_off(cluster: Cluster) -> None:
    """The holder's requests hang, its process goes on and never ends."""
    one = _one(cluster, again=True, identity="pod", release=False)
    incident_on(cluster, "partition", one, lasts=150)
    one.leader.cut_for(55)


def cut_off_slow_rhythm(cluster: Cluster) -> None:
    """As above, for a program that renews rarely and ends at its deadline."""
    settings = Settings("rare-system", "rare", "rare", 15, 10, 5, release=False)
    one = Workload(cluster, "rare", settings, replicas=2)
    cluster.api.run(60)
    incident_on(cluster, "partition", one, lasts=150)
    one.leader.cut_for(40)


def static_crash(cluster: Cluster) -> None:
    """A static Pod of the control plane dies, and its kubelet starts it later."""
    pod = _static_leader(cluster)
    incident_on(cluster, "crash", pod.workload)
    pod.end(2, back_after=30)


def static_crash_twice(cluster: Cluster) -> None:
    """It dies, comes back, and dies again before its Lease has run out."""
    pod = _static_leader(cluster)
    incident_on(cluster, "crash", pod.workload)
    pod.end(1, back_after=1)
    cluster.api.after(9, lambda: pod.end(1, back_after=30))


def _static_leader(cluster: Cluster) -> Pod:
    control_plane(cluster)
    static = [pod for pod in cluster.pods.values() if pod.workload.kind == "Node"]
    return next(pod for pod in static if pod.elector.leads)


def set_stopped(cluster: Cluster) -> None:
    """One Pod of a StatefulSet is deleted; no label tells its revision."""
    one = _unlabelled_set(cluster)
    incident_on(cluster, "graceful_stop", one)
    one.leader.delete()


def set_stopped_alone(cluster: Cluster) -> None:
    """As above; the others do not contend, so the Pod made anew takes it again."""
    one = _unlabelled_set(cluster)
    for pod in one.pods:
        if not pod.elector.leads:
            pod.elector.kill()
    incident_on(cluster, "graceful_stop", one)
    one.leader.delete()


def _unlabelled_set(cluster: Cluster) -> Workload:
    one = _one(cluster, kind="StatefulSet", release=True, identity="uuid", replicas=3)
    one.labelled = False
    for pod in one.pods:
        pod.obj["metadata"]["labels"].pop("controller-revision-hash", None)
        cluster.api.change("pods", pod.obj)
    return one


def slow_for_all(cluster: Cluster) -> None:
    """Every request takes seconds, yet somebody always writes: there is no silence."""
    settings = Settings("edge", "vip", "vip-speaker", 6, 4, 1)
    Workload(cluster, "vip", settings, kind="DaemonSet")
    cluster.api.run(60)
    cluster.api.incident("api_slow", "all", lasts=130)
    cluster.api.slow_until = cluster.api.now + timedelta(seconds=60)


def late_after_outage(cluster: Cluster) -> None:
    """The API server is back, and one client waits much longer than the others."""
    settings = Settings("slow-system", "slow-client", "slow", 60, 55, 5, release=False)
    one = Workload(cluster, "slow-client", settings, again=True, identity="pod", replicas=1)
    cluster.api.run(60)
    cluster.api.incident("api_outage", "all", lasts=150)
    cluster.api.outage(25, watch_breaks=cluster.api.random.random() < 0.5)
    one.leader.cut_for(75)


def all_pods_restart(cluster: Cluster) -> None:
    """All Pods of a Deployment are deleted at once; the new ones take their time to start."""
    one = _one(cluster, kind="ReplicaSet", release=True, identity="uuid")
    incident_on(cluster, "graceful_stop", one, lasts=150)
    for pod in one.pods:
        pod.delete(replace=False)
    for number in range(one.replicas):
        cluster.api.after(45, lambda number=number: _created(one, number))  # type: ignore[misc]


def recreated(cluster: Cluster) -> None:
    """A rollout with the strategy Recreate: the old ReplicaSet goes to zero first."""
    one = _one(cluster, kind="ReplicaSet", release=True, identity="uuid")
    incident_on(cluster, "rollout", one, lasts=150)
    api, old = cluster.api, one.owner
    one.scaled(f"Scaled down replica set {old} to 0 from {one.replicas}")
    for pod in one.pods:
        about = one.kind, one.pods_in, old
        api.event(about, "SuccessfulDelete", f"Deleted pod: {pod.name}", "replicaset-controller")
        pod.delete(replace=False)
    one.hash = api.words(len(one.hash))
    api.after(4, lambda: one.scaled(f"Scaled up replica set {one.owner} to {one.replicas} from 0"))
    for number in range(one.replicas):
        api.after(48, lambda number=number: _created(one, number))  # type: ignore[misc]


def containers_restart(cluster: Cluster) -> None:
    """The probes of all its Pods fail: the kubelets start their containers anew."""
    one = _one(cluster, kind="ReplicaSet", release=True, identity="uuid")
    incident_on(cluster, "restart_in_place", one, lasts=150)
    for pod in one.pods:
        pod.event("Killing", "Container manager failed liveness probe, will be restarted")
        back = 40 if pod.elector.leads else 55
        pod.elector.stop()
        pod.end(2, back_after=back)


def crash_loop(cluster: Cluster) -> None:
    """The holder crashes for the fifth time, and its kubelet waits before it starts it again."""
    one = _one(cluster, kind="ReplicaSet", release=False, identity="uuid")
    incident_on(cluster, "crash_loop", one)
    pod = one.leader
    pod.restarts = 4
    pod.end(2, back_after=80)


def paused(cluster: Cluster) -> None:
    """The process stands still, and its probes fail for that time."""
    one = _one(cluster, release=False, identity="uuid", again=True)
    incident_on(cluster, "partition", one, lasts=150)
    pod = one.leader
    pod.elector.freeze(one.settings.duration * 2.2)
    pod.condition("Ready", "False", "ContainersNotReady")


def _created(one: Workload, number: int) -> None:
    one.created(one.add(number, one.cluster.free_node("")))


CLASSES = {
    "cut-off": cut_off,
    "cut-off-slow-rhythm": cut_off_slow_rhythm,
    "static-crash": static_crash,
    "static-crash-twice": static_crash_twice,
    "set-stopped": set_stopped,
    "set-stopped-alone": set_stopped_alone,
    "slow-for-all": slow_for_all,
    "late-after-outage": late_after_outage,
    "all-pods-restart": all_pods_restart,
    "recreated": recreated,
    "containers-restart": containers_restart,
    "crash-loop": crash_loop,
    "paused": paused,
}


def made_class(name: str, seed: int) -> Made:
    """The recording of one class, in a cluster where others renew quietly."""
    cluster, _ = cluster_of(f"{name}-{seed}", 10)
    CLASSES[name](cluster)
    cluster.api.run(170)
    return cluster.api.recording(f"{name}-{seed}")
