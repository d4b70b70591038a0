"""Delete old incidents. They are kept longer than changes: each has copies of its own.

Incidents that go on, and those with notes, stay.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from leases.history.write.replica_lock import take_turn
from leases.models import IncidentNote, IncidentRecord

LONGER = timedelta(days=365)  # than changes
MAX_KEPT = 20_000  # of one cluster, the newest
BATCH = 50  # rows deleted in one transaction: the writer may wait for it


def forgettable_incidents(cluster: str, before: datetime) -> list[list[int]]:
    """Return batches of rows to delete. `before` is the time from which changes are kept."""
    notes = IncidentNote.objects.filter(cluster=cluster, incident=OuterRef("incident"))
    rows = IncidentRecord.objects.filter(~Exists(notes), cluster=cluster, ended__isnull=False)
    old = rows.filter(Q(ended__lt=before - LONGER) | Q(ended__lt=before) & ~Q(part_of=""))
    numbers = sorted({*_numbers(old), *_numbers(_beyond(cluster, rows))})
    return [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]


def forget_incidents(cluster: str, numbers: list[int]) -> int:
    """Delete these rows in one transaction. Returns how many existed."""
    with transaction.atomic():
        take_turn(cluster)
        return IncidentRecord.objects.filter(pk__in=numbers).delete()[0]


def _beyond(cluster: str, rows: QuerySet[IncidentRecord]) -> QuerySet[IncidentRecord]:
    newest = IncidentRecord.objects.filter(cluster=cluster).order_by("-began", "-incident")
    last = newest.values_list("began", flat=True)[MAX_KEPT - 1 : MAX_KEPT].first()
    return rows.none() if last is None else rows.filter(began__lt=last)


def _numbers(rows: QuerySet[IncidentRecord]) -> list[int]:
    return list(rows.values_list("pk", flat=True))
