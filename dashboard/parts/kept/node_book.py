"""What is known of one cluster's Nodes, beside its watched heartbeats."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.domain.node import Node
from leases.domain.steady_clock import Jump, moved
from leases.tracking.store import Store

COMPARED_EVERY = 10.0  # seconds; Nodes with heartbeats
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

    async def replace(self, found: Iterable[Node], read_at: datetime | None, problem: str) -> None:
        """These are all Nodes now. A heartbeat without a Node is no news if `read_at` is None."""
        fresh = {node.name: node for node in found}
        if not await asyncio.to_thread(_same_groups, self.nodes, fresh):
            self.version += 1
        self._comparison = (float("-inf"), [], [])
        self.nodes, self.read_at, self.problem = fresh, read_at, problem


def _same_groups(some: Mapping[str, Node], others: Mapping[str, Node]) -> bool:
    return some.keys() == others.keys() and all(
        (node.zone, node.pool) == (others[name].zone, others[name].pool)
        for name, node in some.items()
    )
