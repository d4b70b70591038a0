"""The times in which we saw nothing, and how what comes after them is to be believed.

Live, the moment of seeing is the moment it happened. After a lost connection the events that catch
up tell of the past; after a list or a restart all that differs is inferred, with the window in
which it happened.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.changes.write_time import Observation
from leases.domain.steady_clock import Jump, moved
from leases.tracking.tracked_lease import Tracked

BRIEF = timedelta(seconds=2)  # a connection lost for no longer leaves no verdict in doubt


class BlindTimes:
    """What one cluster's store knows of its own blindness."""

    def __init__(self) -> None:
        self.heard: datetime | None = None  # the newest event or list
        self.behind: datetime | None = (
            None  # since when events may tell of the past; None when live
        )
        self._blind: tuple[datetime | None, datetime] | None = None  # the last blind time
        self._jumped: datetime | None = None  # the last jump of the wall clock, as it is now

    def lost(self, since: datetime) -> None:
        """Nothing has been seen since then."""
        if self.behind is None:
            self.behind = since

    def resumed(self, at: datetime) -> None:
        """The watch goes on where it stopped."""
        if self.behind is not None and at - self.behind > BRIEF:
            self._blind = (self.behind, at)

    def caught_up(self) -> None:
        """Events tell of the present again."""
        self.behind = None

    def clock_jumped(self, jump: Jump) -> None:
        """The wall clock was set: what runs out across that is inferred."""
        by = jump.by
        self.heard, self.behind = moved(self.heard, by), moved(self.behind, by)
        if self._blind is not None:
            self._blind = (moved(self._blind[0], by), moved(self._blind[1], by))
        self._jumped = jump.after

    def listed(self, at: datetime, *, as_of: datetime) -> None:
        """Everything is known again as of a list, whose first page may be older than its last."""
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
        """How an event is seen; `newest`: what is known of its Lease already happened by then;
        `unseen_since`: not all that was written to it since then was understood.
        """
        if unseen_since is not None:
            return Observation(now=now, since=min(unseen_since, now), inferred=True)
        if self.behind is None and not inferred:
            return Observation(now=now)
        return Observation(now=now, since=_later(self.behind, newest, now), inferred=inferred)

    def listing(
        self, now: datetime, newest: datetime | None, *, remembered: bool = False
    ) -> Observation:
        """How a Lease in a list is seen."""
        since = _later(self.behind or self.heard, newest, now)
        return Observation(now=now, since=since, inferred=True, listed=True, remembered=remembered)

    def unseen_since(self, known: Tracked, now: datetime) -> datetime | None:
        """The start of the blind time into which a run-out falls; None when it was seen.

        A run-out is not seen where the wall clock jumped since the renewal.
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
    """Where a window starts: after what is known of the Lease already."""
    if since is not None and newest is not None:
        since = max(since, newest)
    return None if since is None else min(since, now)
