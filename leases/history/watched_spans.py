"""Store when each cluster was watched, so that an unwatched time never looks quiet."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import uuid4

import msgspec
from django.db import connection
from django.db.models import Min

from leases import models
from leases.domain import watched_times
from leases.domain.figures import Span
from leases.domain.steady_clock import EARLIEST, Jump
from leases.history.database import execute_many, from_stored, to_stored

MAX_CLOSED = 10_000  # waiting spans of one cluster; older ones count as unwatched
STOOD_STILL = "Leaseboard or its machine was suspended."
LASTS = timedelta(seconds=15)  # a span updated this recently is still open

_UPSERT = (
    "INSERT INTO leases_watchspan (cluster, process, since, until, ended, detail) "
    "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (cluster, process, since) DO UPDATE SET "
    "until = excluded.until, ended = excluded.ended, detail = excluded.detail"
)


class WatchLog:
    """The spans of this process's watches that are not stored yet. Lives on the event loop."""

    def __init__(self) -> None:
        self.process = uuid4().hex
        self._open: dict[str, watched_times.WatchedTime] = {}
        self._closed: dict[str, deque[watched_times.WatchedTime]] = {}
        self._paused: dict[str, bool] = {}  # whether the watch is live during the pause

    def record(self, cluster: str, now: watched_times.Connection) -> None:
        live = now.state is watched_times.ConnectionState.LIVE
        if cluster in self._paused:
            self._paused[cluster] = live
        elif live:
            if cluster not in self._open:
                self._open[cluster] = watched_times.WatchedTime(since=now.since, until=now.since)
        else:
            self._close(cluster, now.heard_at or now.since, watched_times.WatchEnd.LOST, now.detail)

    def pause(self, cluster: str, at: datetime, why: str) -> None:
        """From now on observations are not stored: they count as unwatched time."""
        self._paused[cluster] = cluster in self._open
        self._close(cluster, at, watched_times.WatchEnd.LOST, why)

    def resume(self, cluster: str, at: datetime) -> None:
        if self._paused.pop(cluster, False):
            self._open[cluster] = watched_times.WatchedTime(since=at, until=at)

    def clock_jumped(self, jump: Jump, why: str) -> None:
        """The skipped time counts as unwatched."""
        for cluster in tuple(self._open):
            self._close(cluster, jump.before, watched_times.WatchEnd.LOST, why)
            self._open[cluster] = watched_times.WatchedTime(since=jump.after, until=jump.after)

    def stood_still(self, cluster: str, since: datetime, until: datetime) -> None:
        """Nothing ran in between: that time counts as unwatched."""
        if cluster in self._open:
            self._close(cluster, since, watched_times.WatchEnd.LOST, STOOD_STILL)
            self._open[cluster] = watched_times.WatchedTime(since=until, until=until)

    def stop(self, cluster: str, at: datetime) -> None:
        self._close(cluster, at, watched_times.WatchEnd.STOPPED, "")

    def take(self, cluster: str, until: datetime) -> tuple[watched_times.WatchedTime, ...]:
        """Return the spans to store: ended ones, and the open one as of `until`."""
        spans = list(self._closed.pop(cluster, ()))
        if cluster in self._open:
            spans.append(_until(self._open[cluster], until))
        return tuple(spans)

    def _close(
        self, cluster: str, at: datetime, ended: watched_times.WatchEnd, detail: str
    ) -> None:
        span = self._open.pop(cluster, None)
        if span is not None:
            closed = msgspec.structs.replace(_until(span, at), ended=ended, detail=detail)
            waiting = self._closed.setdefault(cluster, deque(maxlen=MAX_CLOSED))
            waiting.append(closed)


def save(spans: Iterable[tuple[str, str, watched_times.WatchedTime]]) -> None:
    """Store these spans, each with its cluster and process. Runs in the caller's transaction."""
    adapt = connection.ops.adapt_datetimefield_value
    rows = [
        (cluster, process, adapt(one.since), adapt(one.until), one.ended, to_stored(one.detail))
        for cluster, process, one in spans
    ]
    execute_many(_UPSERT, rows)


def watched_since(cluster: str) -> datetime | None:
    """Return when the cluster was first watched; None: never."""
    first = models.WatchSpan.objects.filter(cluster=cluster).aggregate(at=Min("since"))
    at: datetime | None = first["at"]
    return at


def unwatched_times(
    cluster: str, *, since: datetime, until: datetime, now: datetime
) -> tuple[watched_times.UnwatchedTime, ...]:
    """Return the parts of a range in which nobody watched the cluster, oldest first."""
    spans = spans_around(cluster, since=since, until=until, now=now)
    return watched_times.unwatched(spans, since=since, until=min(until, now))


def unwatched_of(
    clusters: Iterable[str], *, since: datetime, until: datetime, now: datetime
) -> dict[str, tuple[watched_times.UnwatchedTime, ...]]:
    """Return the same for several clusters, without why each time began."""
    end = min(until, now)
    spans: dict[str, list[watched_times.WatchedTime]] = {name: [] for name in clusters}
    rows = models.WatchSpan.objects.filter(
        cluster__in=list(spans), since__lte=until, until__gt=since - LASTS
    )
    for row in rows.order_by("since"):
        spans[row.cluster].append(_watched(row, now))
    return {
        name: watched_times.unwatched(some, since=since, until=end) for name, some in spans.items()
    }


AROUND = timedelta(minutes=1)  # read around a range: a pause may lie across its end


def blind_between(
    cluster: str, *, since: datetime, until: datetime, now: datetime
) -> tuple[Span, ...]:
    """Return the unwatched parts of a range as a figure leaves them out."""
    around = unwatched_times(cluster, since=since - AROUND, until=until + AROUND, now=now)
    return watched_times.within(around, since, until)


MAX_READ = 100_000  # spans of one cluster


def pauses(cluster: str) -> tuple[Span, ...]:
    """Return all times in which nobody watched the cluster, up to its last span, oldest first."""
    rows = models.WatchSpan.objects.filter(cluster=cluster).order_by("-since")
    spans = sorted(rows.values_list("since", "until")[:MAX_READ])
    found: list[Span] = []
    reached = EARLIEST
    for since, until in spans:
        if since - reached > watched_times.BRIEF:
            found.append((reached, since))
        reached = max(reached, until)
    return tuple(found)


def spans_around(
    cluster: str, *, since: datetime, until: datetime, now: datetime
) -> list[watched_times.WatchedTime]:
    """Return the watched times that touch a range, and the last before it, oldest first."""
    rows = models.WatchSpan.objects.filter(cluster=cluster, since__lte=until)
    before = rows.filter(until__lte=since).order_by("-until").first()
    inside = rows.filter(until__gt=since).order_by("since")
    return [_watched(row, now) for row in (*([before] if before else []), *inside)]


def _watched(row: models.WatchSpan, now: datetime) -> watched_times.WatchedTime:
    ended = watched_times.WatchEnd(row.ended)
    lasts = ended is watched_times.WatchEnd.CUT and row.until > now - LASTS
    until = max(row.until, now) if lasts else row.until
    return watched_times.WatchedTime(
        since=row.since, until=until, ended=ended, detail=from_stored(row.detail)
    )


def _until(span: watched_times.WatchedTime, at: datetime) -> watched_times.WatchedTime:
    return msgspec.structs.replace(span, until=max(span.since, at))
