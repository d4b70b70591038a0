"""One cluster that is watched: what we know of it and of its Nodes, and how to write to it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from dashboard import clock
from dashboard.config import ClusterSpec
from leases.domain.figures import DEFAULT_ABANDONED_AFTER
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import Node, ObjectName
from leases.domain.phase import WINDOW, Phase
from leases.domain.steady_clock import Jump, moved
from leases.domain.watched_times import Connection, ConnectionState
from leases.kube.cluster_source import SourceKind
from leases.kube.evidence import EvidenceReader
from leases.kube.holder_pods import HolderPods
from leases.kube.lease_client import LeaseClient
from leases.kube.open_watch import Slices
from leases.tracking.counters import Counters
from leases.tracking.renewals import RenewalLog
from leases.tracking.store import Store
from leases.wire.status import Unreachable
from leases.worker_threads import WorkerThreads

T = TypeVar("T")

# By acting user, namespace and verb: when the cluster answered, and whether it allows the verb.
Verdicts = dict[tuple[str, str, str], tuple[datetime, bool]]

node_threads = WorkerThreads("nodes", 2)  # they compare and order all heartbeats
SLICE = 100  # Leases looked at in one go
LOOK_SECONDS = 2.0  # at renewals
SELDOM = 2.0  # seconds between two renewals of a Lease; faster ones are looked at each time
# All others are looked at in every LOOKS-th look: a Lease remembers its last renewals.
LOOKS = int((WINDOW - 1) * SELDOM / LOOK_SECONDS)
REMEMBERED = timedelta(hours=1)  # renewals of a Lease that has stopped
FOLLOWED = tuple(kind for kind in Kind if kind is not Kind.HEARTBEAT)
QUESTIONS = 4  # pages that may ask one cluster for more than its Leases at a time


class WatchedCluster:
    """One cluster: what we know of it, and how to ask and write to it."""

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER,
        read_only: bool = False,
        impersonate: bool = False,
    ) -> None:
        """`impersonate`: the cluster is asked to take a write for the signed-in person's."""
        self.name = spec.name
        self.read_only = read_only
        self.impersonate = impersonate
        self.verdicts: Verdicts = {}  # see dashboard.parts.cluster_write_access
        self.source = spec.source
        self.store = Store(spec.name, abandoned_after=abandoned_after)
        self.counters = Counters()
        self._looked = 0  # events that had come at the last look at renewals
        self._looks = 1  # until all are looked at
        self._fast: Sequence[ObjectName] = ()
        self.unprocessed_seconds: Callable[[], float] = float  # see Tracker.unprocessed_seconds
        self.client: LeaseClient | None = None
        self.questions = asyncio.Semaphore(QUESTIONS)
        self.renewals = RenewalLog()
        self._evidence: tuple[LeaseClient, EvidenceReader] | None = None
        self.pods = HolderPods(lambda: self.evidence, clock.now)

    async def look_at_renewals(self, now: datetime, slices: Slices) -> None:
        """Remember how regularly all but heartbeats are renewed, and those that a page shows."""
        self.renewals.forget(now - REMEMBERED)
        if self.counters.events == self._looked:
            return
        self._looked = self.counters.events
        self._looks -= 1
        everyone = self._looks <= 0
        keys = self.renewals.asked if everyone else (*self._fast, *self.renewals.asked)
        leases = list(filter(None, map(self.store.get, keys)))
        if everyone:
            leases += self.store.in_any_order(FOLLOWED, tuple(Phase))
        for first in range(0, len(leases), SLICE):
            self.renewals.look(leases[first : first + SLICE])
            await slices.end()  # whoever waits for the loop does not wait for all of them
        if everyone:
            # By the median, so that a fast one may stand still for a while.
            self._fast = [one.key for one in leases if (one.cadence_seconds or SELDOM) < SELDOM]
            self._looks = LOOKS

    @property
    def embedded(self) -> bool:
        return self.source.kind is SourceKind.EMBEDDED

    @property
    def paused(self) -> bool:
        return self.store.connection.state is ConnectionState.PAUSED

    @property
    def connection(self) -> Connection:
        """What a reader is told of the watch: behind is not live."""
        return self.store.connection.shown(clock.now())

    def as_of(self, now: datetime) -> datetime:
        """The moment of what we know of the cluster: see Connection.as_of."""
        return self.store.connection.as_of(now)

    def read_at(self, now: datetime) -> datetime | None:
        """When what we know was true; None when nothing was read yet, by an earlier run either."""
        told = self.store.connection.shown(now)
        live = told.state is ConnectionState.LIVE
        return now if live else told.heard_at or self.store.heard_at

    @property
    def lease_count(self) -> int:
        return self.store.size()

    @property
    def writer(self) -> LeaseClient:
        """The client to write with. Raises Unreachable while there is none."""
        if self.client is None:
            detail = self.store.connection.detail
            raise Unreachable(f"{self.name} is not connected. {detail}".strip())
        return self.client

    @property
    def evidence(self) -> EvidenceReader:
        """Asks about Pods, Nodes and Events, for causes and for pages at one pace. Raises
        Unreachable while there is no client.
        """
        client = self.writer
        if self._evidence is None or self._evidence[0] is not client:
            self._evidence = (client, EvidenceReader(client, clock.now))
        return self._evidence[1]

    def writer_for(self, user: AbstractBaseUser | AnonymousUser) -> LeaseClient:
        """The client for a write by this person. Raises Unreachable while there is none."""
        name = self.acting_user(user)
        return self.writer.acting_as(name) if name else self.writer

    def acting_user(self, user: AbstractBaseUser | AnonymousUser) -> str:
        """The name that the cluster sees instead of ours; empty: ours."""
        return user.get_username() if self.impersonate else ""

    @property
    def synced(self) -> bool:
        return self.store.synced


class ByCluster(Mapping[str, T]):
    """Values by the name of their cluster. A change makes a new dict: any thread may walk it."""

    def __init__(self, given: Mapping[str, T] | None = None) -> None:
        self._now = dict(given or {})

    def __getitem__(self, name: str) -> T:
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)

    def values(self) -> ValuesView[T]:
        return self._now.values()

    def items(self) -> ItemsView[str, T]:
        return self._now.items()

    def put(self, name: str, value: T) -> None:
        self._now = {**self._now, name: value}

    def drop(self, name: str) -> None:
        self._now = {key: value for key, value in self._now.items() if key != name}


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
        if not await node_threads.run(_same_groups, self.nodes, fresh):
            self.version += 1
        self._comparison = (float("-inf"), [], [])
        self.nodes, self.read_at, self.problem = fresh, read_at, problem


def _same_groups(some: Mapping[str, Node], others: Mapping[str, Node]) -> bool:
    return some.keys() == others.keys() and all(
        (node.zone, node.pool) == (others[name].zone, others[name].pool)
        for name, node in some.items()
    )
