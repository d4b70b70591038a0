"""When one cluster was watched in the last day, kept in memory for the pages."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from leases.domain.connection import Connection, ConnectionState
from leases.domain.past.watched_times import UnwatchedTime, WatchedTime, unwatched
from leases.domain.steady_clock import Jump, moved
from leases.history.write.watched_spans import spans_around

DAY = timedelta(days=1)
MAX_SPANS = 2000  # enough for a connection that breaks all the time


class WatchedLately:
    """Only the event loop writes; any thread may read."""

    def __init__(self) -> None:
        self._spans: tuple[WatchedTime, ...] = ()  # oldest first
        self._open: WatchedTime | None = None

    @property
    def first(self) -> datetime | None:
        """When anybody is first known to have watched."""
        spans, still = self._spans, self._open
        return spans[0].since if spans else still.since if still else None

    def read(self, cluster: str, now: datetime) -> None:
        """Load the last day from history, other processes included."""
        self._spans = tuple(spans_around(cluster, since=now - DAY, until=now, now=now))

    def record(self, connection: Connection) -> None:
        if connection.state is ConnectionState.LIVE:
            if self._open is None:
                self._open = WatchedTime(since=connection.since, until=connection.since)
        elif self._open is not None:
            until = max(self._open.since, connection.heard_at or connection.since)
            recent = [span for span in self._spans if span.until > until - 2 * DAY]
            self._spans = (*recent[1 - MAX_SPANS :], replace(self._open, until=until))
            self._open = None

    def clock_jumped(self, jump: Jump) -> None:
        by = jump.by
        self._spans = tuple(_moved(span, by) for span in self._spans)
        if self._open is not None:
            self._open = _moved(self._open, by)

    def unwatched(self, since: datetime, until: datetime) -> tuple[UnwatchedTime, ...]:
        """Return the parts of this range in which nobody watched, oldest first."""
        spans, still = self._spans, self._open
        if still is not None:
            spans = (*spans, replace(still, until=max(until, still.since)))
        return unwatched(spans, since=since, until=until)


def _moved(span: WatchedTime, by: timedelta) -> WatchedTime:
    return replace(span, since=moved(span.since, by), until=moved(span.until, by))
