"""The times when the cluster was not observed, and how to date what comes after them.

Live, a change happened when we observed it. After a lost connection, late events report the past.
After a list or a restart every difference is inferred: it happened somewhere in a time window.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.changes.write_time import Observation
from leases.domain.steady_clock import Jump, moved
from leases.tracking.tracked_lease import Tracked

BRIEF = timedelta(seconds=2)  # a shorter break leaves no judgement in doubt


class BlindTimes:
    def __init__(self) -> None:
        self.heard: datetime | None = None  # when the newest event or list came
        # Since when events may report the past; None when live
        self.behind: datetime | None = None
        self._blind: tuple[datetime | None, datetime] | None = None  # the last blind time
        self._jumped: datetime | None = None  # time of the last clock jump, by the new clock

    def lost(self, since: datetime) -> None:
        """Nothing has been observed since then."""
        if self.behind is None:
            self.behind = since

    def resumed(self, at: datetime) -> None:
        """The watch continues where it stopped."""
        if self.behind is not None and at - self.behind > BRIEF:
            self._blind = (self.behind, at)

    def caught_up(self) -> None:
        """Events report the present again."""
        self.behind = None

    def clock_jumped(self, jump: Jump) -> None:
        """Move all times. Whatever expires across the jump is inferred."""
        by = jump.by
        self.heard, self.behind = moved(self.heard, by), moved(self.behind, by)
        if self._blind is not None:
            self._blind = (moved(self._blind[0], by), moved(self._blind[1], by))
        self._jumped = jump.after

    def listed(self, at: datetime, *, as_of: datetime) -> None:
        """A list makes everything known again. Its first page may be older than its last."""
        self._blind = (self.behind or self.heard, at)
        self.heard, self.behind = at, as_of if as_of < at else None

    def event(
        self,
        now: datetime,
        newest: datetime | None,
        *,
        inferred: bool,
        unseen_since: datetime | None = None,
    ) -> Observation:
        """Return how an event was observed.

        `newest`: it happened after this. `unseen_since`: some write since then was not understood.
        """
        if unseen_since is not None:
            return Observation(now=now, since=min(unseen_since, now), inferred=True)
        if self.behind is None and not inferred:
            return Observation(now=now)
        return Observation(now=now, since=_later(self.behind, newest, now), inferred=inferred)

    def listing(
        self, now: datetime, newest: datetime | None, *, remembered: bool = False
    ) -> Observation:
        """Return how a Lease in a list was observed."""
        since = _later(self.behind or self.heard, newest, now)
        return Observation(now=now, since=since, inferred=True, listed=True, remembered=remembered)

    def unseen_since(self, known: Tracked, now: datetime) -> datetime | None:
        """Return the start of the blind time in which a Lease expired; None: it was observed.

        It was not observed either if the wall clock jumped since the renewal.
        """
        blind = self._blind
        if self.behind is not None and now - self.behind > BRIEF:
            blind = (self.behind, now)
        across = self._jumped is not None and known.observed_at < self._jumped
        runs_out = known.runs_out_at if blind or across else None
        if runs_out is None:
            return None
        if blind is None or runs_out > blind[1]:
            return min(self._jumped, runs_out) if self._jumped is not None and across else None
        since = blind[0] or known.lease.metadata.creation_timestamp or runs_out
        return min(since, runs_out)


def _later(since: datetime | None, newest: datetime | None, now: datetime) -> datetime | None:
    """Return the start of a time window: after the known state of the Lease."""
    if since is not None and newest is not None:
        since = max(since, newest)
    return None if since is None else min(since, now)
