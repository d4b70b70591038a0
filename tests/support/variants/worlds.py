"""Made recordings by name and seed: worlds with elections, and the stories played in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from tests.support.variants import cluster_stories, stories
from tests.support.variants.cluster import Cluster
from tests.support.variants.electors import Settings
from tests.support.variants.made import Made
from tests.support.variants.workload import Workload

NAMES = (
    "velero", "longhorn-manager", "rook-ceph-operator", "flux-source", "crossplane", "nats",
    "metallb-controller", "external-dns", "tekton-pipelines", "knative-serving", "contour",
    "strimzi-operator", "postgres-operator", "vault", "linkerd-destination", "sealed-secrets",
    "kubevirt-controller", "cilium-operator",
)  # fmt: skip
TIMES = ((15, 10, 2), (15, 10, 2), (15, 10, 3), (30, 20, 5), (20, 15, 4), (10, 7, 1.5))
Play = Callable[[Cluster, list[Workload]], object]
One = Callable[[Cluster, Workload], None]

SINGLE: tuple[One, ...] = (
    stories.graceful_stop, stories.rollout, stories.crash, stories.oom_killed,
    stories.restart_in_place, stories.evicted_for_memory, stories.preempted, stories.descheduled,
    stories.tainted, stories.starved, stories.partition, stories.frozen, stories.scaled_down,
    stories.flapping, stories.standby_dies, stories.theft, stories.release,
    stories.release_by_form, stories.annotate, stories.duration, stories.delete_lease,
    partial(stories.theft, manager="kubectl", operation="Apply"),
    partial(stories.theft, manager="kubectl-replace"),
    partial(stories.theft, manager="kubectl-client-side-apply"),
    partial(stories.theft, manager="k9s"),
    partial(stories.release, manager="node-fetch"),
    partial(stories.theft, manager="OpenAPI-Generator"),
    partial(stories.duration, manager="Mozilla"),
    partial(stories.release, manager="curl"),
    partial(stories.annotate, manager="kubectl-label"),
)  # fmt: skip


OF_DEPLOYMENTS: tuple[One, ...] = (
    stories.scaled_down, stories.preempted, stories.tainted, stories.evicted_for_memory,
    stories.descheduled,
)  # fmt: skip


def workload(cluster: Cluster, name: str, **given: object) -> Workload:
    random = cluster.api.random
    duration, deadline, retry = random.choice(TIMES)
    release = bool(given.pop("release", random.random() < 0.85))
    manager = random.choice((name, "manager", "controller", name.partition("-")[0]))
    lease = random.choice((f"{name}-leader", f"{cluster.api.words(8)}.{name}.io", name))
    own = random.random() < 0.7 or "namespace" in given
    namespace = str(given.pop("namespace", f"{name}-system"))
    settings = Settings(namespace, lease, manager, duration, deadline, retry, release)
    kind = given.pop("kind", None) or random.choice(
        ("ReplicaSet",) * 3 + ("StatefulSet", "DaemonSet")
    )
    identity = given.pop("identity", None) or random.choice(("uuid", "uuid", "pod"))
    replicas = given.pop("replicas", None) or random.choice((2, 3))
    if not own:
        settings = replace(settings, namespace="kube-system")
        given.setdefault("pods_in", namespace)
    options = {"kind": kind, "identity": identity, "replicas": replicas} | given
    return Workload(cluster, name, settings, **options)  # type: ignore[arg-type]


def cluster_of(seed: int | str, count: int, *, workers: int = 12) -> tuple[Cluster, list[Workload]]:
    """A cluster after a quiet minute."""
    cluster = Cluster(seed, workers=workers)
    for node in cluster.worker_names(2):
        cluster.clocks[node] = cluster.api.between(-40, 40)
    names = cluster.api.random.sample(NAMES, min(count, len(NAMES)))
    names += [f"operator-{number}" for number in range(count - len(names))]
    found = [workload(cluster, name) for name in names]
    cluster.api.run(60)
    return cluster, found


def mixed(seed: int, picks: tuple[One, ...] = ()) -> Made:
    """Several stories of one election each, at times by chance."""
    cluster, found = cluster_of(seed, 14)
    random = cluster.api.random
    picks = picks or tuple(random.sample(SINGLE, 7))
    for story, one in zip(picks, list(found), strict=False):
        cluster.api.run(random.uniform(2, 18))
        fitting = _fit(story, one, found)
        found.remove(fitting)
        story(cluster, fitting)
    cluster.api.run(170)
    return cluster.api.recording(f"mixed-{seed}")


def _fit(story: One, one: Workload, found: list[Workload]) -> Workload:
    """A workload of the kind that the story needs."""
    needs_pods = [each for each in found if each.kind == "ReplicaSet"]
    if story in (
        stories.scaled_down,
        stories.preempted,
        stories.tainted,
        stories.evicted_for_memory,
        stories.descheduled,
    ):
        return needs_pods[0]
    return one if one in found else found[0]


def _slow(cluster: Cluster, found: list[Workload]) -> None:
    tight = Workload(
        cluster, "vip", Settings("edge", "vip", "vip-speaker", 6, 5, 1), kind="DaemonSet"
    )
    cluster.api.run(30)
    cluster_stories.api_slow(cluster, [tight.lease])


def _two_crashes(cluster: Cluster, found: list[Workload]) -> None:
    apart = [one for one in found if one.leader.node != found[0].leader.node]
    stories.crash(cluster, found[0])
    cluster.api.run(4)
    stories.crash(cluster, apart[0])
    cluster.api.run(3)
    stories.graceful_stop(cluster, apart[1])


def _namespace(cluster: Cluster, found: list[Workload]) -> None:
    found += [workload(cluster, f"team-{number}", namespace="team-a") for number in range(4)]
    cluster.api.run(30)
    cluster_stories.namespace_deleted(cluster, "team-a", found)


def _others(cluster: Cluster, found: list[Workload]) -> None:
    stories.lock(cluster)
    stories.preferred_holder(cluster)
    stories.clock_skew(cluster, ahead=True)
    stories.clock_skew(cluster, ahead=False)
    cluster.api.run(20)
    stories.delete_heartbeat(cluster)


def _node_down(cluster: Cluster, _found: list[Workload]) -> None:
    cluster_stories.node_down(cluster, cluster_stories.busiest(cluster))


def _node_deleted(cluster: Cluster, _found: list[Workload]) -> None:
    cluster_stories.node_down(cluster, cluster_stories.busiest(cluster), deleted=True)


def _node_rebooted(cluster: Cluster, _found: list[Workload]) -> None:
    cluster_stories.node_rebooted(cluster, cluster_stories.busiest(cluster))


def _node_cut_off(cluster: Cluster, _found: list[Workload]) -> None:
    cluster_stories.node_cut_off(cluster, cluster_stories.busiest(cluster))


def _drain(cluster: Cluster, _found: list[Workload]) -> None:
    cluster_stories.drain(cluster, cluster_stories.busiest(cluster))


def _outage(seconds: float, *, watch_breaks: bool = True) -> Play:
    return lambda cluster, _found: cluster_stories.api_outage(
        cluster, seconds, watch_breaks=watch_breaks
    )


def _slow_without_harm(cluster: Cluster, _found: list[Workload]) -> None:
    cluster_stories.api_slow(cluster, None)


def _rollout_of_all(cluster: Cluster, found: list[Workload]) -> None:
    cluster_stories.rollout_of_all(cluster, found[:11])


def _many_nodes_down(cluster: Cluster, found: list[Workload]) -> None:
    """A rack loses power: all but a few nodes are dead at once."""
    safe = {pod.node for one in found[:3] for pod in one.pods}
    dead = [node for node in cluster.nodes if node not in safe]
    on_dead = [pod for node in dead for pod in cluster.pods_on(node) if pod.elector.leads]
    leases = [pod.workload.lease for pod in on_dead]
    hearts = [f"kube-node-lease/{node}" for node in dead]
    cluster.api.incident("node_down", [*leases, *hearts], lasts=150)
    for node in dead:
        cluster.node_down(node)


def control_plane(cluster: Cluster) -> list[str]:
    """Static Pods on three nodes, that take the name of their node as identity."""
    nodes = [f"cp-{number}" for number in range(3)]
    for node in nodes:
        cluster.add_node(node)
    for name in ("kube-scheduler", "kube-controller-manager"):
        settings = Settings("kube-system", name, name, release=False)
        Workload(cluster, name, settings, kind="Node", identity="node", replicas=3, nodes=nodes)
    cluster.api.run(40)
    return nodes


def _control_plane_down(cluster: Cluster, _found: list[Workload]) -> None:
    nodes = control_plane(cluster)
    held = {n: sum(pod.elector.leads for pod in cluster.pods_on(n)) for n in nodes}
    cluster_stories.node_down(cluster, max(nodes, key=lambda node: held[node]))


def _control_plane_crash(cluster: Cluster, _found: list[Workload]) -> None:
    control_plane(cluster)
    static = [pod for pod in cluster.pods.values() if pod.workload.kind == "Node"]
    first, second = (pod.workload for pod in static if pod.elector.leads)
    stories.crash(cluster, first)
    cluster.api.run(30)
    stories.starved(cluster, second)


def _down_and_crash(cluster: Cluster, found: list[Workload]) -> None:
    node = cluster_stories.busiest(cluster)
    apart = next(one for one in found if one.leader.node != node)
    cluster_stories.node_down(cluster, node)
    cluster.api.run(3)
    stories.crash(cluster, apart)


def _drain_and_others(cluster: Cluster, found: list[Workload]) -> None:
    node = cluster_stories.busiest(cluster)
    apart = [one for one in found if one.leader.node != node]
    cluster_stories.drain(cluster, node)
    cluster.api.run(2)
    stories.crash(cluster, apart[0])
    stories.theft(cluster, apart[1])
    cluster.api.run(1)
    stories.graceful_stop(cluster, apart[2])


def _outage_after_rollout(cluster: Cluster, found: list[Workload]) -> None:
    stories.rollout(cluster, found[0])
    cluster.api.run(40)
    cluster_stories.api_outage(cluster, 25)


# What is played, with how many elections, and for how many seconds.
WORLDS: dict[str, tuple[Play, int, float]] = {
    "node-down": (_node_down, 16, 170),
    "node-deleted": (_node_deleted, 16, 170),
    "node-rebooted": (_node_rebooted, 16, 170),
    "node-cut-off": (_node_cut_off, 16, 190),
    "drain": (_drain, 16, 120),
    "outage-20": (_outage(20), 16, 120),
    "outage-90": (_outage(90), 16, 190),
    "outage-silent": (_outage(35, watch_breaks=False), 16, 140),
    "outage-silent-90": (_outage(90, watch_breaks=False), 16, 190),
    "slow": (_slow, 14, 140),
    "slow-unharmed": (_slow_without_harm, 14, 120),
    "control-plane-down": (_control_plane_down, 12, 150),
    "control-plane-crash": (_control_plane_crash, 12, 150),
    "down-and-crash": (_down_and_crash, 16, 150),
    "drain-and-others": (_drain_and_others, 16, 100),
    "outage-after-rollout": (_outage_after_rollout, 12, 130),
    "rollout-of-all": (_rollout_of_all, 14, 120),
    "two-crashes": (_two_crashes, 14, 90),
    "namespace": (_namespace, 8, 90),
    "others": (_others, 8, 90),
    "outage-of-60": (_outage(30), 60, 100),
    "outage-of-300": (_outage(30), 300, 100),
    "rack-down": (_many_nodes_down, 30, 150),
}
WORKERS = {"rack-down": 250}
BIG = ("outage-of-60", "outage-of-300", "rack-down")


def made(name: str) -> Made:
    """`mixed-SEED`, or WORLD-SEED of a world above."""
    world, _, seed = name.rpartition("-")
    if world == "mixed":
        return mixed(int(seed))
    play, count, seconds = WORLDS[world]
    cluster, found = cluster_of(name, count, workers=WORKERS.get(world, 12))
    play(cluster, found)
    cluster.api.run(seconds)
    return cluster.api.recording(name)
