"""The times in which nobody watched a cluster, and how much was written in them.

A board that was stopped, cut off or suspended saw nothing. The resourceVersion says afterwards
whether the cluster went on meanwhile: it moves with every write.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from leases.domain.lease import number_of
from leases.domain.steady_clock import Jump, moved
from leases.domain.watched_times import BRIEF, MissedTime, Missing
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

EXPECTED = 4.0  # writes; a time with fewer cannot tell whether the cluster went on
STOOD_STILL = timedelta(seconds=4)  # a shorter time may be a busy machine
RATED = 2000  # Leases whose cadence is read
FEW = 3  # renewals that make a cadence
MOST = 0.5  # of a time
SHORTEST = 0.5  # seconds: a shorter one is a burst


def usual_writes(leases: Sequence[Tracked], seconds: float) -> float:
    """Return how many renewals these Leases make in that time, by their cadences."""
    some = leases[:: 1 + len(leases) // RATED]
    cadences = [one.cadence_seconds for one in some if one.renewals_seen >= FEW]
    rate = sum(1 / max(cadence, SHORTEST) for cadence in cadences if cadence)
    return rate * seconds * len(leases) / max(1, len(some))


class MissedTimes:
    """The time that nobody watches, until the events of that time have come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: str | None = None  # the last one before; None: not known yet
        # Not watched so far: since the earlier run, or ever.
        self._told: MissedTime | None = None
        self._since, self._why, self._goes_on = store.heard_at, Missing.STOPPED, True
        self._shut_until: datetime | None = None  # when a try to watch failed last
        self._read: int | None = 0  # events of that time; None: a list skipped some

    def begins(self, since: datetime | None, version: str | None, why: Missing) -> None:
        """Nothing is seen from then on, unless it was so before."""
        first = self._told is not None and self._told.since is None
        if not self._goes_on and (self._told is None or first):
            self._since, self._why, self._version = since, why, version
            self._shut_until, self._read = None, 0
        self._goes_on = True

    def read(self, events: int) -> None:
        """These events came, of that time or of now."""
        if self._read is not None:
            self._read += events

    def listed(self) -> None:
        self._read = None

    def failed(self, now: datetime) -> None:
        """A try to watch failed."""
        self._shut_until = now

    def known_version(self, version: str | None) -> None:
        if self._version is None:
            self._version = version or ""

    def ended(self, now: datetime) -> MissedTime | None:
        """The watch goes on. Returns what was missed, if it was more than brief."""
        if not self._goes_on:
            return None
        self._goes_on = False
        if self._since is not None and now - self._since <= BRIEF:
            self._told = None
            return None
        self._told = MissedTime(since=self._since, until=now, why=self._why)
        return self._told

    def caught_up(self, now: datetime, version: str | None) -> MissedTime | None:
        """All events of that time have come. Returns it with how much was written in it, or in the
        part of it in which we could not get in, if that was most of it.
        """
        told, self._told = self._told, None
        if told is None or told.since is None:
            return None
        before, after = number_of(self._version or ""), number_of(version or "")
        usual = usual_writes(self._store.snapshot(), (now - told.since).total_seconds())
        if not before or after < before or usual < EXPECTED:
            return None
        shut = ((self._shut_until or told.since) - told.since) / (now - told.since)
        # A version moves with all that is written: Pods and Events, too.
        share = (after - before if self._read is None else self._read) / usual
        if shut > MOST:  # afterwards all wrote as usual
            share = max(0.0, share - (1 - shut)) / shut
        return msgspec.structs.replace(told, wrote=share)

    def clock_jumped(self, jump: Jump) -> None:
        self._since, self._told = moved(self._since, jump.by), None
