"""When a cluster was watched, the times between, and the state of its watch now."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

BRIEF = timedelta(seconds=2)  # a shorter pause leaves nothing in doubt
BRIEF_SECONDS = BRIEF.total_seconds()


class WatchEnd(StrEnum):
    CUT = ""  # it continues, or its process was killed
    STOPPED = "stopped"  # the process stopped
    LOST = "lost"  # the connection was lost


class WatchedTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One unbroken time in which one process watched a cluster."""

    since: datetime
    until: datetime  # as far as known; grows while it continues
    ended: WatchEnd = WatchEnd.CUT
    detail: str = ""  # why, in a sentence


class UnwatchedTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time in which nobody watched; `ended` says how the watched time before it ended."""

    since: datetime
    until: datetime
    ended: WatchEnd | None  # None: it was never watched before
    detail: str = ""

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    def covers(self, since: datetime, until: datetime) -> bool:
        return self.since <= since and self.until >= until


def unwatched(
    spans: Iterable[WatchedTime], *, since: datetime, until: datetime
) -> tuple[UnwatchedTime, ...]:
    """Return the parts of a range that no span covers, oldest first, without BRIEF pauses.

    Spans are ordered by their start. Those of several processes may overlap.
    """
    found: list[UnwatchedTime] = []
    reached, last = since, None
    for span in spans:
        if span.since > until:
            break
        if span.since - reached > BRIEF:
            found.append(_between(reached, span.since, last))
        if last is None or span.until > last.until:
            last = span
        reached = max(reached, span.until)
    if until - reached > BRIEF:
        found.append(_between(reached, until, last))
    return tuple(found)


def _between(since: datetime, until: datetime, last: WatchedTime | None) -> UnwatchedTime:
    ended = None if last is None else last.ended
    return UnwatchedTime(since=since, until=until, ended=ended, detail=last.detail if last else "")


class Missing(StrEnum):
    """Why our own watch saw nothing."""

    LOST = "lost"  # the connection broke
    STOPPED = "stopped"  # no process of ours ran
    STOOD_STILL = "stood still"  # the process or its machine was suspended


class MissedTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time in which we did not watch a cluster, known at its end or later."""

    since: datetime | None  # None: it was never watched before
    until: datetime
    why: Missing
    # How much was written in it, as a share of what is written at the usual rate; None: unknown.
    wrote: float | None = None


def within(
    spans: Iterable[UnwatchedTime], since: datetime, until: datetime
) -> tuple[tuple[datetime, datetime], ...]:
    """Return the parts of unwatched times inside a range, as a figure leaves them out."""
    cut = ((max(one.since, since), min(one.until, until)) for one in spans)
    return tuple((start, end) for start, end in cut if start < end)


class ConnectionState(StrEnum):
    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    REFUSED = "refused"
    PAUSED = "paused"  # somebody wants it so


class Connection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The state of one cluster's watch; `since` is when that state began."""

    state: ConnectionState
    since: datetime
    detail: str = ""  # what to do, in one sentence, when not live
    heard_at: datetime | None = None  # when the last byte from the cluster came
    behind_seconds: float | None = None  # delay of the last renewals, or more, as `lag_seconds`
    lag_seconds: float = 0.0  # how old the newest event taken is while more wait; 0: none wait

    def as_of(self, now: datetime) -> datetime:
        """Return the time of our data: now while live, else when we last heard from the cluster."""
        if self.state is ConnectionState.LIVE:
            return now - timedelta(seconds=self.lag_seconds) if self.is_behind else now
        if self.heard_at is None:
            return now
        return min(now, self.heard_at)

    @property
    def is_behind(self) -> bool:
        """Whether what is known is too old to be claimed as now, though the watch is live."""
        return self.lag_seconds >= BRIEF_SECONDS and self.state is ConnectionState.LIVE

    def shown(self, now: datetime) -> "Connection":
        """Return what a reader is told: a watch that is behind is not live."""
        if not self.is_behind:
            return self
        as_of = self.as_of(now)
        return msgspec.structs.replace(
            self,
            state=ConnectionState.STALE,
            since=as_of,
            heard_at=as_of,
            detail=f"Leaseboard is {self.lag_seconds:.0f} s behind: more arrives than it reads.",
        )
