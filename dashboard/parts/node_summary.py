"""The summary of all heartbeats: counts, the worst ones, and a comparison with the Nodes."""

import heapq
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from dashboard.feed import ClusterFeed
from dashboard.parts.formatting import counted, when
from dashboard.parts.key_figures import Calm, calm, watched_day
from dashboard.parts.lease_row import Freshness, domain_of, freshness
from dashboard.parts.names import ShownName, lease_url, shown_name
from dashboard.watched_cluster import Grouping
from leases.domain.change import ChangeType
from leases.domain.figures import SEVERITY
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import NOT_READY_GRACE
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection
from leases.tracking.tracked_lease import Tracked

WORST = 12
NAMED = 20  # heartbeats named in each list of the comparison
BAD = (Phase.EXPIRED, Phase.LATE)


class Beat(msgspec.Struct, frozen=True):
    shown: ShownName  # without its domain
    full: str
    url: str
    phase: str
    fresh: Freshness | None


class GroupLine(msgspec.Struct, frozen=True):
    """A zone or a pool: the number of its Nodes and of its heartbeats in trouble."""

    name: str
    nodes: int
    late: int
    expired: int


class Join(msgspec.Struct, frozen=True):
    """Heartbeats compared with Nodes; `says` is when the Nodes were read, or why not."""

    says: str
    known: bool
    orphans: tuple[Beat, ...] = ()
    orphan_total: int = 0
    disagreeing: tuple[Beat, ...] = ()
    disagreeing_total: int = 0
    silent: tuple[str, ...] = ()  # Nodes without a heartbeat
    silent_total: int = 0


class NodesView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything beside the node grid. Without `known`, no list was read yet."""

    cluster: str
    connection: Connection
    known: bool
    counts: tuple[tuple[str, int], ...]
    total: int
    counted_in: str  # the time in which Nodes joined and left: "24 h", or what of it was watched
    joined: int
    left: int
    worst: tuple[Beat, ...]
    bad: int
    finding: str
    calm: Calm
    join: Join


def nodes_view(watched: ClusterFeed, now: datetime) -> NodesView:
    store, activity = watched.store, watched.activity
    bad = list(store.select((Kind.HEARTBEAT,), BAD))
    everything = store.counts()
    everything[Kind.HEARTBEAT] |= dict.fromkeys(BAD, 0) | Counter(one.phase for one in bad)
    counts = everything[Kind.HEARTBEAT]
    some = tuple((phase.value, counts.get(phase, 0)) for phase in Phase)
    shown = tuple((word, number) for word, number in some if number or word in _ALWAYS)
    worst = heapq.nsmallest(WORST, bad, key=lambda one: (SEVERITY[one.phase], one.observed_at))
    total = sum(counts.values())
    return NodesView(
        cluster=store.cluster,
        connection=store.connection.shown(now),
        known=store.known,
        counts=shown,
        total=total,
        joined=sum(activity.of_kind(Kind.HEARTBEAT, (ChangeType.CREATED,), now)),
        counted_in=watched_day(activity.watched, now).span,
        left=sum(activity.of_kind(Kind.HEARTBEAT, (ChangeType.DELETED,), now)),
        worst=tuple(beat_view(store.cluster, one, now) for one in worst),
        bad=len(bad),
        finding=_finding(total, shown) if store.known else "The heartbeats are not read yet.",
        calm=calm(store, everything, kinds=(Kind.HEARTBEAT,), title="Every heartbeat is in time"),
        join=_join(watched, now),
    )


_ALWAYS = (Phase.HELD.value, Phase.LATE.value, Phase.EXPIRED.value)


def group_lines(watched: ClusterFeed, by: Grouping) -> tuple[GroupLine, ...]:
    """Each zone or pool, worst first."""
    if by == "none" or not watched.nodes.nodes:
        return ()
    bad: dict[Phase, Counter[str]] = {phase: Counter() for phase in BAD}
    for one in watched.store.select((Kind.HEARTBEAT,), BAD):
        bad[one.phase][watched.nodes.group(one.key.name, by)] += 1
    lines = [
        GroupLine(name, number, bad[Phase.LATE][name], bad[Phase.EXPIRED][name])
        for name, number in watched.nodes.groups(by).items()
    ]
    return tuple(sorted(lines, key=lambda line: (-line.expired, -line.late, line.name)))


def beat_view(cluster: str, one: Tracked, now: datetime) -> Beat:
    url = lease_url(cluster, one.key)
    shown = shown_name(cluster, one.key, domain_of(one))
    return Beat(shown, one.key.name, url, one.phase.value, freshness(one, now))


def _finding(total: int, counts: Sequence[tuple[str, int]]) -> str:
    said = ", ".join(f"{number:,} {word}" for word, number in counts)
    return f"{counted(total, 'heartbeat')}: {said}."


def _join(watched: ClusterFeed, now: datetime) -> Join:
    nodes, store = watched.nodes, watched.store
    if nodes.read_at is None:
        return Join(nodes.problem, known=False)
    orphans, silent = orphans_of(watched), nodes.silent(store) if store.known else []
    settled = nodes.read_at - NOT_READY_GRACE
    disagreeing = [
        one
        for one in store.select((Kind.HEARTBEAT,), (Phase.EXPIRED,))
        if one.key.namespace == NODE_LEASES
        and one.phase_since <= settled
        and (node := nodes.nodes.get(one.key.name)) is not None
        and node.ready
    ]
    return Join(
        f"Nodes as of {when(nodes.read_at, now)}." + (f" {nodes.problem}" if nodes.problem else ""),
        known=True,
        orphans=tuple(beat_view(store.cluster, one, now) for one in orphans[:NAMED]),
        orphan_total=len(orphans),
        disagreeing=tuple(beat_view(store.cluster, one, now) for one in disagreeing[:NAMED]),
        disagreeing_total=len(disagreeing),
        silent=tuple(silent[:NAMED]),
        silent_total=len(silent),
    )


def orphans_of(watched: ClusterFeed) -> list[Tracked]:
    """Node heartbeats whose Node was missing when the Nodes were last read."""
    found = map(watched.store.get, watched.nodes.missing(watched.store))
    return [one for one in found if one is not None]
