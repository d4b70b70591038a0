"""Mutes and maintenance windows as they are stored."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from leases.domain.notify.quiet import Quiet
from leases.history.database_text import to_stored
from leases.models import QuietTime


def quiet_times() -> list[Quiet]:
    """All that are stored: `forget_quiet_times` deletes those that ended long ago."""
    return [
        Quiet(
            cluster=row.cluster,
            namespace=row.namespace,
            name=row.name,
            since=row.since,
            until=row.until,
        )
        for row in QuietTime.objects.all()
    ]


def listed(now: datetime) -> list[QuietTime]:
    """Those that have not ended, the next one to begin last."""
    return list(_not_ended(now).order_by("since", "pk"))


def add(row: QuietTime) -> None:
    row.reason = to_stored(row.reason)
    row.save()


def end(number: int, now: datetime) -> None:
    """End it now; one that has not begun is deleted."""
    QuietTime.objects.filter(pk=number, since__gt=now).delete()
    _not_ended(now).filter(pk=number).update(until=now)


def forget_quiet_times(before: datetime) -> None:
    QuietTime.objects.filter(until__lt=before).delete()


def _not_ended(now: datetime) -> QuerySet[QuietTime]:
    return QuietTime.objects.filter(Q(until=None) | Q(until__gt=now))
