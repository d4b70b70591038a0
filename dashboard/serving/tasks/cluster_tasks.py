"""The tasks of one cluster, each with what readers cannot rely on while it is down."""

from __future__ import annotations

from functools import partial

from dashboard.live.publisher import ClusterHub
from dashboard.parts.kept.watched_cluster import WatchedCluster
from dashboard.serving.tasks.cluster_watch import ClusterWatch
from dashboard.serving.tasks.deletions import Deletions
from dashboard.serving.tasks.incidents import Incidents
from dashboard.serving.tasks.node_reading import read_nodes
from dashboard.serving.tasks.supervisor import Supervisor


def start_cluster_tasks(
    supervisor: Supervisor,
    cluster: WatchedCluster,
    watch: ClusterWatch,
    *,
    hub: ClusterHub,
    deletions: Deletions,
    incidents: Incidents,
) -> None:
    start, name = partial(supervisor.start, cluster=cluster.name), cluster.name
    start("watch", watch.run, effect=f"The Leases of {name} are not watched.", on_death=watch.died)
    read = partial(read_nodes, cluster, hub.nodes)
    start("nodes", read, effect=f"The Nodes of {name} are not read.")
    start("publisher", hub.run, effect=f"Open pages of {name} do not follow what happens.")
    start(
        "deletions",
        deletions.run,
        effect=f"Deletions of many Leases of {name} are interrupted.",
    )
    start(
        "incidents",
        incidents.run,
        effect=f"Changes of {name} get no cause, and its incidents stand still.",
    )
    start(
        "evidence",
        incidents.look_up,
        effect=f"Pods, Nodes and Events of {name} are not asked for the causes of changes.",
    )
