"""How much of the last 24 hours was watched, in words for captions."""

from __future__ import annotations

from datetime import datetime

import msgspec

from dashboard.charts.changes_per_hour import unwatched_hours
from dashboard.parts.formatting import age
from leases.domain.past.watched_times import UnwatchedTime
from leases.history.read.hourly_activity import HOUR, HOURS
from leases.history.read.watched_lately import WatchedLately


class WatchedDay(msgspec.Struct, frozen=True):
    """`since` is when watching began, if within the day; `blind` are the unwatched times."""

    since: datetime | None
    blind: tuple[UnwatchedTime, ...]
    never: bool

    @property
    def spans(self) -> list[tuple[datetime, datetime]]:
        return [(span.since, span.until) for span in self.blind]

    @property
    def _lost(self) -> float:
        """Unwatched seconds since watching began."""
        return sum(span.seconds for span in self.blind if span.ended is not None)

    def caption(self, of: str) -> str:
        """A caption with the watched time: "of elections, since 10:14"."""
        if self.never:
            return "not watched"
        since = f"since {self.since:%H:%M}" if self.since else ""
        lost = f"{age(self._lost)} not watched" if self._lost else ""
        return ", ".join(filter(None, (of, since, lost)))

    @property
    def span(self) -> str:
        """The counted time: "24 h", or less."""
        return "not watched" if self.never else self.caption("" if self.since else "24 h")


def watched_day(watched: WatchedLately, now: datetime) -> WatchedDay:
    """Sum up the running hour and the 23 before it."""
    start = now.replace(minute=0, second=0, microsecond=0) - (HOURS - 1) * HOUR
    blind = watched.unwatched(start, now)
    watched_seconds = (now - start).total_seconds() - sum(span.seconds for span in blind)
    never = bool(blind) and watched_seconds < 1.0
    since = blind[0].until if blind and blind[0].ended is None and not never else None
    return WatchedDay(since, blind, never)


def unwatched_by_hour(watched: WatchedLately, now: datetime) -> list[str]:
    """How much of each of these hours nobody watched, as `unwatched_hours` says it."""
    return unwatched_hours(watched_day(watched, now).spans, now, hours=HOURS)
