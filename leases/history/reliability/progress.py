"""How far the totals of a cluster are final, and with them which changes may be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.db import transaction

from leases.domain.past.periods import DAY, start_of
from leases.history.write.watched_spans import watched_since
from leases.models import NearMissCount, ReliabilityProgress, WatchRecord

LATE = timedelta(hours=1)  # a day is final when the watch is stored up to so long after it
LATEST = timedelta(days=7)  # a change stored so long after its day does not count any more
LOST = timedelta(days=2)  # or so long after it, if nobody watches the cluster any more
NEVER = datetime(1, 1, 2, tzinfo=UTC)


def next_day(cluster: str) -> date | None:
    """Return the first day whose totals may change; None: the cluster was never watched."""
    row = ReliabilityProgress.objects.filter(cluster=cluster).first()
    if row is not None:
        return row.day
    first = watched_since(cluster)
    return None if first is None else first.astimezone(UTC).date()


def counted_until(cluster: str) -> datetime:
    """Return the moment before which changes are counted for good, and not needed any more."""
    row = ReliabilityProgress.objects.filter(cluster=cluster).first()
    return NEVER if row is None else start_of(row.day)


def is_final(cluster: str, day: date, now: datetime) -> bool:
    """Whether no change of this day will be stored any more."""
    end = start_of(day) + DAY
    if now < end + LATE:
        return False
    if now >= end + LOST:
        return True
    row = WatchRecord.objects.filter(cluster=cluster).first()
    return row is not None and row.watched_until >= end + LATE


def finish_day(cluster: str, day: date) -> None:
    """Note that the totals of a day are final. Another replica may be further.

    If `reopen` went back meanwhile, the next count begins there.
    """
    following = day + DAY
    with transaction.atomic():
        ReliabilityProgress.objects.get_or_create(cluster=cluster, defaults={"day": following})
        ReliabilityProgress.objects.filter(cluster=cluster, day=day).update(day=following)
        NearMissCount.objects.filter(cluster=cluster, at__lt=start_of(following)).delete()


def reopen(cluster: str, times: Iterable[datetime], now: datetime) -> None:
    """Count again from the day of the earliest of these changes. Runs in the caller's transaction.

    Changes of before the first watched time that is still stored cannot be counted any more.
    """
    late = min((at for at in times if now - LATEST < at < now - LATE), default=None)
    if late is None:
        return
    later = ReliabilityProgress.objects.filter(cluster=cluster, day__gt=late.astimezone(UTC).date())
    since = watched_since(cluster) if later.exists() else None
    if since is not None:
        later.update(day=max(since, late).astimezone(UTC).date())
