"""Decide from when on deadlines may be judged: no Lease expires because we stopped observing.

After a break, or after the process stood still, events of that time may still arrive. And received
data that is not processed yet may contain the very renewal that a deadline waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import inf
from statistics import median

from leases.domain.steady_clock import Jump, moved
from leases.wire.watch_events import Applied, Renewed, WatchEvent

GRACE = timedelta(seconds=1)  # after connecting, for late events to arrive
OLD = 0.5  # seconds; an older event is late, or its writer's clock is wrong
LONG_GRACE = timedelta(seconds=5)  # to distinguish the two
NEARER = 0.05  # seconds by which a read must be newer than all before it
SAMPLE = 9  # events per read whose age is measured
STALL = timedelta(seconds=2)  # without a check for this long, the process stood still


class DeadlineGate:
    """Of one watch. `since` is when deadlines may be judged; None while the watch is not live."""

    def __init__(self) -> None:
        self.since: datetime | None = None
        self.catching_up = False
        self._least_age = inf
        self._ask: Callable[[], float] = float
        self._unprocessed = timedelta(0)

    def lost(self) -> None:
        """The watch is not live."""
        self.since = None

    def clock_jumped(self, jump: Jump) -> None:
        """Move the time, and measure the age of events anew."""
        self.since = moved(self.since, jump.by)
        self._least_age = inf

    def connected(self, now: datetime, unprocessed: Callable[[], float]) -> None:
        """The watch is live. `unprocessed` returns how many seconds received data has waited."""
        self._ask = unprocessed
        self.resumed(now)

    def resumed(self, now: datetime) -> None:
        """Events from the time we were disconnected may still arrive."""
        self.since = now + GRACE
        self.catching_up = True
        self._least_age = inf

    def arrived(self, events: Sequence[WatchEvent], now: datetime) -> None:
        """While each read is newer than all before it, the server is sending a backlog.

        The writers' clocks may be wrong, so the age itself proves nothing; that it falls does.
        """
        if not self.catching_up:
            return
        some = events[:: max(1, len(events) // SAMPLE)]
        claimed = [_claimed(event) for event in some]
        ages = [(now - time).total_seconds() for time in claimed if time is not None]
        if ages and (age := median(ages)) < self._least_age - NEARER:
            self._least_age = age
            self.since = now + (GRACE if age < OLD else LONG_GRACE)

    @property
    def unprocessed(self) -> timedelta:
        """How long received data may have waited already."""
        return timedelta(seconds=self._ask())

    def behind(self, now: datetime, due: datetime | None) -> datetime | None:
        """Return since when our state is out of date though the watch is live, or None.

        Either the process stood still since the check that was `due`, or more arrives than we
        process.
        """
        if self.since is None:
            return None
        before, self._unprocessed = self._unprocessed, self.unprocessed
        if self._unprocessed:
            return now - self._unprocessed if before and self._unprocessed > GRACE else None
        return due if due is not None and now - due > STALL else None

    def until(self, now: datetime) -> datetime | None:
        """Return up to when deadlines may be judged: all data received until then was applied."""
        known = now - self._unprocessed
        return known if self.since is not None and known >= self.since else None


def _claimed(event: WatchEvent) -> datetime | None:
    """When the writer of this event says that it renewed."""
    if type(event) is Renewed:
        return event.renew_time
    return event.lease.spec.renew_time if type(event) is Applied else None
