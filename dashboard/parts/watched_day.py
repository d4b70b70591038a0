"""How much of the last 24 hours was watched, as captions of what is counted in them say it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from dashboard.parts.formatting import age
from leases.domain.past.watched_times import UnwatchedTime
from leases.history.read.hourly_activity import HOUR, HOURS
from leases.history.read.watched_lately import WatchedLately


class WatchedDay(msgspec.Struct, frozen=True):
    """`since` is set when nobody had watched before; `blind` are all times without a watch."""

    since: datetime | None
    blind: tuple[UnwatchedTime, ...]
    never: bool

    @property
    def spans(self) -> list[tuple[datetime, datetime]]:
        return [(span.since, span.until) for span in self.blind]

    @property
    def _lost(self) -> float:
        """Seconds without a watch since the first."""
        return _length(b for b in self.blind if b.ended is not None).total_seconds()

    def caption(self, of: str) -> str:
        """What is counted, since when, and what was missed: "of elections, since 10:14"."""
        if self.never:
            return "not watched"
        since = f"since {self.since:%H:%M}" if self.since else ""
        lost = f"{age(self._lost)} not watched" if self._lost else ""
        return ", ".join(filter(None, (of, since, lost)))

    @property
    def span(self) -> str:
        """The time in which was counted: "24 h", or less."""
        return "not watched" if self.never else self.caption("" if self.since else "24 h")


def watched_day(watched: WatchedLately, now: datetime) -> WatchedDay:
    """The running hour and the 23 before it."""
    start = now.replace(minute=0, second=0, microsecond=0) - (HOURS - 1) * HOUR
    blind = watched.unwatched(start, now)
    never = bool(blind) and now - start - _length(blind) < timedelta(seconds=1)
    since = blind[0].until if blind and blind[0].ended is None and not never else None
    return WatchedDay(since, blind, never)


def _length(blind: Iterable[UnwatchedTime]) -> timedelta:
    return sum((span.until - span.since for span in blind), timedelta())
