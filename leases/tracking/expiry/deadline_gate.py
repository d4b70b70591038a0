"""From when on deadlines may be judged: nothing runs out because we stopped listening.

After a break, or when the process itself stood still, what happened meanwhile is still on its way;
and what has arrived and was not read yet may be the very renewal that a deadline waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import inf
from statistics import median

from leases.domain.steady_clock import Jump, moved
from leases.wire.watch_events import Applied, Renewed, WatchEvent

GRACE = timedelta(seconds=1)  # after connecting, for what happened meanwhile to arrive
OLD = 0.5  # seconds; what is older is late, or written by a wrong clock
LONG_GRACE = timedelta(seconds=5)  # to tell the one from the other
NEARER = 0.05  # seconds by which a reading is less old than all before, while we catch up
SAMPLE = 9  # events of a reading are looked at
STALL = timedelta(seconds=2)  # after so long without a look we did not run, or the clock was set


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
        """The wall clock was set; how old what arrives seems is to be learned anew."""
        self.since = moved(self.since, jump.by)
        self._least_age = inf

    def connected(self, now: datetime, unprocessed: Callable[[], float]) -> None:
        """It is live; `unprocessed` tells for how long something that arrived was not followed."""
        self._ask = unprocessed
        self.resumed(now)

    def resumed(self, now: datetime) -> None:
        """What happened while we did not listen is to come."""
        self.since = now + GRACE
        self.catching_up = True
        self._least_age = inf

    def arrived(self, events: Sequence[WatchEvent], now: datetime) -> None:
        """While what arrives is ever less old, a backlog is being sent.

        How old it is by the writers' clocks may be wrong, and stays so; that it falls may not.
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
        """How long something that arrived may already wait to be followed."""
        return timedelta(seconds=self._ask())

    def behind(self, now: datetime, due: datetime | None) -> datetime | None:
        """Since when what we know is out of date though the watch is live: we stood still since the
        look that was `due`, or more arrives than we read. None when it is not.
        """
        if self.since is None:
            return None
        before, self._unprocessed = self._unprocessed, self.unprocessed
        if self._unprocessed:
            return now - self._unprocessed if before and self._unprocessed > GRACE else None
        return due if due is not None and now - due > STALL else None

    def until(self, now: datetime) -> datetime | None:
        """Up to when deadlines may be judged: what arrived till then has been followed. As of the
        last look whether we are `behind`.
        """
        known = now - self._unprocessed
        return known if self.since is not None and known >= self.since else None


def _claimed(event: WatchEvent) -> datetime | None:
    """When the writer of this event says that it renewed."""
    if type(event) is Renewed:
        return event.renew_time
    return event.lease.spec.renew_time if type(event) is Applied else None
