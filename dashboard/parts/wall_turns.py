"""Which cluster a screen of several shows next.

In order while all are calm. While some are in trouble, only those take turns, the worst first: a
room looks at trouble until it is over, and a cluster that is alone in trouble stays.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from dashboard.feed import ClusterFeed
from dashboard.parts.key_figures import unexcused
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState

SECONDS = 24  # two pages of calm lanes: `static/js/wall.js` turns them every 12 s
ROOM = 44  # characters of names in the line, so that it fits an upright screen


class Turns(msgspec.Struct, frozen=True):
    """`troubled` are clusters, the worst first; `number` of `total` is the one on the screen."""

    troubled: list[str]
    number: int
    total: int

    @property
    def shown(self) -> list[str]:
        """Those of the troubled that the line has room for."""
        room, names = ROOM, list[str]()
        for name in self.troubled:
            room -= len(name) + 3
            if room < 0 and names:
                break
            names.append(name)
        return names

    @property
    def rest(self) -> str:
        more, calm = len(self.troubled) - len(self.shown), self.total - len(self.troubled)
        words = [f"{more} more"] if more else []
        if calm:
            words.append(f"{calm} calm" if self.troubled else f"all {calm} calm")
        return ", ".join(words)


def turns_of(feeds: Iterable[ClusterFeed], cluster: str, now: datetime) -> Turns:
    """`feeds` are those of the screen's clusters in their order."""
    all_of_them = list(feeds)
    ranked = [(_rank(feed, now), feed.store.cluster) for feed in all_of_them]
    names = [name for _, name in ranked]
    troubled = sorted((rank, name) for rank, name in ranked if rank is not None)
    number = names.index(cluster) + 1 if cluster in names else 0
    return Turns([name for _, name in troubled], number, len(names))


def next_cluster(feeds: Iterable[ClusterFeed], after: str, now: datetime) -> str | None:
    """Whose wall follows that of `after`; None when there is no cluster."""
    all_of_them = list(feeds)
    turning = turns_of(all_of_them, "", now).troubled or [one.store.cluster for one in all_of_them]
    place = turning.index(after) + 1 if after in turning else 0
    return turning[place % len(turning)] if turning else None


def _rank(feed: ClusterFeed, now: datetime) -> tuple[int, int] | None:
    """How bad, the worst being the least; None is calm. What is late alone is not yet trouble:
    the screen would jump.
    """
    store, as_of = feed.store, feed.store.connection.as_of(now)
    counts, excused = store.counts(), store.excused()
    expired = unexcused(counts, excused)[Phase.EXPIRED]
    abandoned = sum(one.kind is Kind.ELECTION and one.phase is Phase.VACANT for one in excused)
    vacant = counts.get(Kind.ELECTION, {}).get(Phase.VACANT, 0) - abandoned
    going_on = sum(one.shown for one in feed.going_on())
    if going_on:
        return 0, -going_on
    if store.connection.shown(now).state is not ConnectionState.LIVE:
        return 1, 0
    if expired + vacant > 0:
        return 2, -(expired + vacant)
    return (3, 0) if feed.flappers.at(as_of) else None
