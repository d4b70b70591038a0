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


class Troubled(msgspec.Struct, frozen=True, order=True):
    """A cluster in trouble; the worst is the least."""

    rank: int
    fewer: int  # the number of what is wrong, negative
    name: str
    css: str


class Turns(msgspec.Struct, frozen=True):
    """`troubled` are the worst first; `number` of `total` is the cluster on the screen."""

    troubled: list[Troubled]
    number: int
    total: int

    @property
    def shown(self) -> list[Troubled]:
        """Those of the troubled that the line has room for."""
        room, some = ROOM, list[Troubled]()
        for one in self.troubled:
            room -= len(one.name) + 3
            if room < 0 and some:
                break
            some.append(one)
        return some

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
    names = [one.store.cluster for one in all_of_them]
    troubled = sorted(bad for one in all_of_them if (bad := _trouble(one, now)) is not None)
    return Turns(troubled, names.index(cluster) + 1 if cluster in names else 0, len(names))


def next_cluster(feeds: Iterable[ClusterFeed], after: str, now: datetime) -> str | None:
    """Whose wall follows that of `after`; None when there is no cluster."""
    all_of_them = list(feeds)
    troubled = [one.name for one in turns_of(all_of_them, "", now).troubled]
    turning = troubled or [one.store.cluster for one in all_of_them]
    place = turning.index(after) + 1 if after in turning else 0
    return turning[place % len(turning)] if turning else None


def _trouble(feed: ClusterFeed, now: datetime) -> Troubled | None:
    """None is calm. What is late alone is not yet trouble: the screen would jump."""
    store, name = feed.store, feed.store.cluster
    counts, excused = store.counts(), store.excused()
    expired = unexcused(counts, excused)[Phase.EXPIRED]
    abandoned = sum(one.kind is Kind.ELECTION and one.phase is Phase.VACANT for one in excused)
    vacant = max(0, counts.get(Kind.ELECTION, {}).get(Phase.VACANT, 0) - abandoned)
    going_on = sum(one.shown for one in feed.going_on())
    if going_on:
        return Troubled(0, -going_on, name, "expired")
    if store.connection.shown(now).state is not ConnectionState.LIVE:
        return Troubled(1, 0, name, "expired")
    if expired or vacant:
        return Troubled(2, -(expired + vacant), name, "expired" if expired else "vacant")
    flapping = len(feed.flappers.at(store.connection.as_of(now)))
    return Troubled(3, -flapping, name, "late") if flapping else None
