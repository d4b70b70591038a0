"""Which Leases of a cluster flap now, and how, in words."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice

import msgspec

from dashboard.board import running_board
from dashboard.parts.formatting import age, counted, span_of
from leases.domain.figures import Flapping, flapping
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.activity import Activity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

MAX_FLAPPING = 1000  # Leases that are listed
FEW = 200  # from so many Leases with many changes on, they are judged less often
SPACING = 0.0001  # seconds for each of them
Flappers = Mapping[ObjectName, Flapping]


def flapping_of(activity: Activity, tracked: Tracked, now: datetime) -> Flapping | None:
    """How one Lease flaps, by the rule of its present kind."""
    changes = activity.last_hour.of(tracked.key)
    return flapping(changes, tracked.kind, now) if changes else None


def flappers_of(cluster: str, now: datetime) -> Flappers:
    """The Leases of one cluster that flap, for a page."""
    return running_board().publisher.hubs[cluster].flappers.at(now)


class FlappingLeases:
    """The Leases of one cluster that flap, most changes first. Any thread may ask."""

    def __init__(self, store: Store, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self._judged: tuple[tuple[int, ...], Flappers] = ((), {})
        self._until = 0.0

    def at(self, now: datetime) -> Flappers:
        """Judge again each second, and when a Lease changed. The same answer is the same object."""
        stamp = (int(now.timestamp()), self._activity.last_hour.version, self._store.seq)
        known, found = self._judged
        if known != stamp and time.monotonic() >= self._until:
            often = self._activity.last_hour.often()
            judged = sorted(islice(self._found(often, now), MAX_FLAPPING), key=_most_changes)
            fresh = dict(judged)
            found = found if fresh == found else fresh
            self._judged = stamp, found
            self._until = time.monotonic() + SPACING * len(often) if len(often) > FEW else 0.0
        return found

    def _found(
        self, often: Iterable[ObjectName], now: datetime
    ) -> Iterator[tuple[ObjectName, Flapping]]:
        for key in often:
            tracked = self._store.get(key)
            if tracked is not None and (how := flapping_of(self._activity, tracked, now)):
                yield key, how


def _most_changes(one: tuple[ObjectName, Flapping]) -> tuple[int, ObjectName]:
    return -one[1].changes, one[0]


# They flap by expiring and recovering.
ONE_HOLDER = (Kind.HEARTBEAT, Kind.IDENTITY)


class FlapView(msgspec.Struct, frozen=True):
    """`amount` is "58 changes", `within` "30 min", `short` "58 in 30 min"; `says` is a sentence."""

    amount: str
    within: str
    says: str
    short: str


def flap_view(how: Flapping, kind: Kind) -> FlapView:
    within = span_of(how.within)
    short = f"{how.changes:,} in {within}"
    lost = f"; {age(how.gap_seconds)} without a holder" if how.gap_seconds else ""
    if kind in ONE_HOLDER and how.holders == 1:
        said = f"Expired {how.changes:,} times in {within}{lost}."
        return FlapView(counted(how.changes, "expiry", "expiries"), within, said, short)
    among = counted(how.holders, "holder")
    if how.hosts < how.holders:
        among = f"{among} on {counted(how.hosts, 'host')}"
    said = f"{counted(how.changes, 'change')} of holder in {within}, {among}{lost}."
    return FlapView(counted(how.changes, "change"), within, said, short)
