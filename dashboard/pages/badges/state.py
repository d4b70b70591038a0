"""What a badge says: the state of one Lease, or how many are held, vacant and expired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import msgspec

from dashboard.parts.formatting import shortened, when
from dashboard.parts.kept.watched_cluster import WatchedCluster
from leases.domain.connection import ConnectionState
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.severity import is_in_trouble
from leases.models import Badge
from leases.tracking.tracked_lease import Tracked

MAX_LABEL = 60  # characters
UNKNOWN, ABSENT, NONE = "unknown", "absent", "none"
# White text on these has a contrast of 4.5 or more.
COLOURS = {
    "held": "#1f7a55", "late": "#8f5f00", "expired": "#c42b28", "vacant": "#7645b8",
    "untimed": "#51606f", ABSENT: "#5c6875", UNKNOWN: "#5c6875", NONE: "#5c6875",
}  # fmt: skip
_COUNTED = {
    Phase.HELD: "held", Phase.LATE: "held", Phase.UNTIMED: "held", Phase.VACANT: "vacant",
    Phase.EXPIRED: "expired",
}  # fmt: skip


class BadgeState(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is the worst one, NONE if no Lease has a holder. `as_of` is None when the cluster was
    never read.
    """

    label: str
    state: str
    words: str
    counts: dict[str, int]
    as_of: datetime | None
    now: datetime
    stale: bool

    @property
    def message(self) -> str:
        if self.as_of is None:
            return f"{UNKNOWN}: not read yet"
        moment = f"{when(self.as_of, self.now)} UTC"
        return f"{self.words}, stale since {moment}" if self.stale else f"{self.words}, {moment}"

    @property
    def colour(self) -> str:
        return COLOURS[UNKNOWN if self.stale else self.state]


def badge_state(badge: Badge, cluster: WatchedCluster | None, now: datetime) -> BadgeState:
    """`cluster` is None if it is not watched any more."""
    name = "/".join(filter(None, (badge.namespace, badge.lease))) or badge.cluster
    state, words, counts, as_of = UNKNOWN, UNKNOWN, dict[str, int](), None
    if cluster is not None and cluster.store.known:
        as_of = cluster.read_at(now)
        state, words, counts = _read(badge, cluster)
    live = cluster is not None and cluster.store.connection.state is ConnectionState.LIVE
    return BadgeState(
        label=shortened(name, MAX_LABEL),
        state=state if as_of else UNKNOWN,
        words=words,
        counts=counts,
        as_of=as_of,
        now=now,
        stale=not live,
    )


def _read(badge: Badge, cluster: WatchedCluster) -> tuple[str, str, dict[str, int]]:
    if badge.lease:
        tracked = cluster.store.get(ObjectName(badge.namespace, badge.lease))
        if tracked is None:
            return ABSENT, "does not exist", {}
        return tracked.phase.value, tracked.phase.value, {}
    found, trouble = _of_namespace(badge, cluster) if badge.namespace else _of_cluster(cluster)
    counts = {word: found[word] for word in ("held", "vacant", "expired")}
    words = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    state = NONE if trouble == "held" and not counts["held"] else trouble
    return state, words, counts


def _of_namespace(badge: Badge, cluster: WatchedCluster) -> tuple[Counter[str], str]:
    rows = cluster.store.of_namespace(badge.namespace)
    return Counter(_COUNTED[row.phase] for row in rows), _worst(rows)


def _of_cluster(cluster: WatchedCluster) -> tuple[Counter[str], str]:
    found: Counter[str] = Counter()
    for phases in cluster.store.counts().values():
        for phase, number in phases.items():
            found[_COUNTED[phase]] += number
    troubled = cluster.store.select(tuple(Kind), (Phase.EXPIRED, Phase.VACANT))
    return found, _worst(troubled)


def _worst(rows: Iterable[Tracked]) -> str:
    troubled = {
        row.phase for row in rows if is_in_trouble(row.phase, row.kind, excused=row.excused)
    }
    return next((one.value for one in (Phase.EXPIRED, Phase.VACANT) if one in troubled), "held")
