"""What is known of one cluster's Nodes: read now and then, beside watched heartbeats."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from dashboard import clock
from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.domain.node import Node
from leases.domain.steady_clock import Jump, moved
from leases.kube.lease_client import LeaseClient
from leases.kube.nodes import list_nodes
from leases.tracking.store import Store
from leases.wire.status import ApiError, Forbidden, NotFound

logger = logging.getLogger(__name__)

READ_EVERY = 60.0  # seconds; a list that takes long is read less often
NONE_EVERY = 5.0  # while there are no Nodes: kubelets may be about to register
SHARE = 0.02  # of the time that may be spent on reading
REFUSED_EVERY = 600.0
COMPARED_EVERY = 10.0  # Nodes with heartbeats
Grouping = Literal["zone", "pool", "none"]


class NodeBook:
    """The Nodes by name as of `read_at`; `problem` says why not. Any thread may read it."""

    def __init__(self) -> None:
        self.nodes: Mapping[str, Node] = {}
        self.read_at: datetime | None = None
        self.problem = "The Nodes have not been read yet."
        self._comparison: tuple[float, list[ObjectName], list[str]] = (float("-inf"), [], [])
        self.version = 0  # grows when a Node comes, goes or is in another group

    def group(self, name: str, by: Grouping) -> str:
        """The zone or the pool of a Node; nothing where it is not known."""
        node = self.nodes.get(name)
        if node is None or by == "none":
            return ""
        return node.zone if by == "zone" else node.pool

    def groups(self, by: Grouping) -> Counter[str]:
        """How many Nodes are in each."""
        return Counter(self.group(name, by) for name in self.nodes)

    def missing(self, store: Store) -> list[ObjectName]:
        """Node heartbeats older than the last read that have no Node. Any thread may ask."""
        return self._compared(store)[0]

    def silent(self, store: Store) -> list[str]:
        """Nodes that have no heartbeat. Any thread may ask."""
        return self._compared(store)[1]

    def _compared(self, store: Store) -> tuple[list[ObjectName], list[str]]:
        read_at, nodes = self.read_at, self.nodes
        if read_at is None:
            return [], []
        if time.monotonic() - self._comparison[0] > COMPARED_EVERY:
            beats = [one for one in store.of_namespace(NODE_LEASES) if one.kind is Kind.HEARTBEAT]
            missing = [
                one.key
                for one in beats
                if one.key.name not in nodes
                and (one.lasting.lease.metadata.creation_timestamp or read_at) < read_at
            ]
            silent = sorted(nodes.keys() - {one.key.name for one in beats})
            self._comparison = (time.monotonic(), missing, silent)
        return self._comparison[1], self._comparison[2]

    def clock_jumped(self, jump: Jump) -> None:
        """The wall clock was set: the Nodes were read as long ago as before."""
        self.read_at = moved(self.read_at, jump.by)

    async def follow(self, cluster: WatchedCluster) -> None:
        """Read them again and again, until cancelled."""
        while True:
            started = time.monotonic()
            wait = 1.0
            if cluster.client is not None:
                wait = await self._read(cluster.name, cluster.client)
            took = time.monotonic() - started
            await asyncio.sleep(max(wait, took / SHARE))

    async def _read(self, cluster: str, client: LeaseClient) -> float:
        """Return the seconds until the next reading."""
        began = clock.now()
        try:
            found = await list_nodes(client)
        except Forbidden:
            self.problem = "Leaseboard may not list Nodes here: no zones, no readiness."
            return REFUSED_EVERY
        except NotFound:
            self.problem = f"{cluster} serves no Nodes, so no zones and no readiness."
            return REFUSED_EVERY
        except ApiError as error:
            logger.info("%s: Nodes could not be read: %s", cluster, error)
            self.problem = f"The Nodes could not be read: {client.advise(error)}"
            return READ_EVERY
        fresh = {node.name: node for node in found}
        if not await asyncio.to_thread(_same_groups, self.nodes, fresh):
            self.version += 1
        self._comparison = (float("-inf"), [], [])
        self.nodes = fresh
        if not found:  # then a heartbeat without a Node is no news
            self.read_at = None
            self.problem = f"{cluster} has no Nodes, so no zones and no readiness."
            return NONE_EVERY
        self.read_at, self.problem = began, ""
        return READ_EVERY


def _same_groups(some: Mapping[str, Node], others: Mapping[str, Node]) -> bool:
    return some.keys() == others.keys() and all(
        (node.zone, node.pool) == (others[name].zone, others[name].pool)
        for name, node in some.items()
    )
