"""One cluster that is watched: what we know of it, and how to ask and write to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import msgspec
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from dashboard.config import ClusterSpec
from dashboard.parts.holdings import Holdings
from leases.domain.election import Candidate
from leases.domain.figures import DEFAULT_ABANDONED_AFTER
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import Node, ObjectName
from leases.domain.phase import Phase
from leases.domain.steady_clock import Jump, moved
from leases.domain.watched_times import ConnectionState
from leases.kube.cluster_source import SourceKind
from leases.kube.kube_objects import HolderPlace, KubeEvent, newest_events, place_of
from leases.kube.lease_client import LeaseClient, candidates_of
from leases.tracking.renewals import RenewalLog
from leases.tracking.store import Store
from leases.tracking.tracker import Counters
from leases.wire.status import ApiError, Forbidden, NotFound, Unauthorized, Unreachable

# By acting user, namespace and verb: when the cluster answered, and whether it allows the verb.
Verdicts = dict[tuple[str, str, str], tuple[datetime, bool]]

SLICE = 100  # Leases looked at in one go
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
        self.verdicts: Verdicts = {}  # see dashboard.parts.write_access
        self.source = spec.source
        self.store = Store(spec.name, abandoned_after=abandoned_after)
        self.counters = Counters()
        self.unprocessed_seconds: Callable[[], float] = float  # see Tracker.unprocessed_seconds
        self.client: LeaseClient | None = None
        self.questions = asyncio.Semaphore(QUESTIONS)
        self.renewals = RenewalLog()
        self.holdings = Holdings(self.store)

    async def look_at_renewals(self, now: datetime) -> None:
        """Remember how regularly all but heartbeats are renewed, and those that a page shows."""
        asked = (self.store.get(key) for key in self.renewals.asked)
        followed = self.store.select(FOLLOWED, tuple(Phase))
        leases = [*followed, *filter(None, asked)]
        for first in range(0, len(leases), SLICE):
            self.renewals.look(leases[first : first + SLICE])
            await asyncio.sleep(0)  # whoever waits for the loop does not wait for all of them
        self.renewals.forget(now - REMEMBERED)

    @property
    def embedded(self) -> bool:
        return self.source.kind is SourceKind.EMBEDDED

    def as_of(self, now: datetime) -> datetime:
        """The moment of what we know of the cluster: see Connection.as_of."""
        return self.store.connection.as_of(now)

    def read_at(self, now: datetime) -> datetime | None:
        """When what we know was true; None when nothing was read yet, by an earlier run either."""
        live = self.store.connection.state is ConnectionState.LIVE
        return now if live else self.store.connection.heard_at or self.store.heard_at

    @property
    def lease_count(self) -> int:
        return count_leases(self.store)

    @property
    def writer(self) -> LeaseClient:
        """The client to write with. Raises Unreachable while there is none."""
        if self.client is None:
            detail = self.store.connection.detail
            raise Unreachable(f"{self.name} is not connected. {detail}".strip())
        return self.client

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


def count_leases(store: Store) -> int:
    return sum(sum(phases.values()) for phases in store.counts().values())


WITHIN = 3.0  # seconds for each answer
MAX_EVENTS = 20
T = TypeVar("T")


class NoAnswer(msgspec.Struct, frozen=True):
    """Why there is no answer: one sentence. `quiet`: nothing is wrong, it is just not to be had."""

    text: str
    quiet: bool


class ClusterAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """`managed` is metadata.managedFields, newest last; candidates are None if there are none."""

    managed: list[dict[str, Any]] | NoAnswer
    events: tuple[KubeEvent, ...] | NoAnswer
    candidates: tuple[Candidate, ...] | NoAnswer | None
    place: HolderPlace | NoAnswer | None = None  # where the holder runs


async def ask(cluster: WatchedCluster, key: ObjectName) -> ClusterAnswers:
    """All of it; takes no longer than a few seconds, however ill the cluster is."""
    async with cluster.questions:
        managed, events, candidates, place = await asyncio.gather(
            _answer(lambda: _managed(cluster, key), "this Lease", "get", "leases"),
            _answer(lambda: _events(cluster, key), "Events", "list", "events"),
            _answer(
                lambda: candidates_of(cluster.writer, key, within=WITHIN),
                "LeaseCandidates",
                "list",
                "leasecandidates",
            ),
            _answer(lambda: _place(cluster, key), "Pods and Nodes", "get", "pods and nodes"),
        )
    return ClusterAnswers(managed=managed, events=events, candidates=candidates, place=place)


async def _events(cluster: WatchedCluster, key: ObjectName) -> tuple[KubeEvent, ...]:
    return await newest_events(cluster.writer, "Lease", key, count=MAX_EVENTS, within=WITHIN)


async def _place(cluster: WatchedCluster, key: ObjectName) -> HolderPlace | None:
    tracked = cluster.store.get(key)
    holder = tracked.lease.holder if tracked else None
    if holder is None:
        return None
    return await place_of(cluster.writer, key.namespace, holder, within=WITHIN)


async def _managed(cluster: WatchedCluster, key: ObjectName) -> list[dict[str, Any]] | NoAnswer:
    try:
        whole = await cluster.writer.raw_get(key, within=WITHIN)
    except NotFound:
        return NoAnswer("The Lease is not in the cluster any more.", quiet=True)
    entries = whole.get("metadata", {}).get("managedFields") or []
    return [entry for entry in entries if isinstance(entry, dict)]


async def _answer(
    question: Callable[[], Awaitable[T]], what: str, verb: str, resource: str
) -> T | NoAnswer:
    try:
        async with asyncio.timeout(2 * WITHIN):
            return await question()
    except Forbidden:
        return NoAnswer(f"We may not read {what} here: grant {verb} on {resource}.", quiet=True)
    except NotFound:
        return NoAnswer(f"This cluster has no {what}.", quiet=True)
    except Unauthorized as error:
        return NoAnswer(f"The cluster does not accept our credentials ({error}).", quiet=False)
    except ApiError as error:
        return NoAnswer(str(error), quiet=False)
    except TimeoutError:
        return NoAnswer(f"The cluster did not tell {what} within {2 * WITHIN:g} s.", quiet=False)


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


logger = logging.getLogger(__name__)

# Told the name of the part that failed, and why; the part is tried again.
Failed = Callable[[str, Exception], None]


def log_failure(part: str, error: Exception) -> None:
    """For a channel that nobody supervises."""
    logger.error("The part %s of open pages failed on an unexpected error", part, exc_info=error)
