"""Forgetting: changes older than the cut go, in small batches; audit rows never do.

For each Lease the last change before the cut stays, unless it is its deletion: what came later
begins with it.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from leases.domain.change import ChangeType
from leases.models import Change

BATCH = 500


def prune_batch(before: datetime) -> int:
    """Forget up to BATCH changes of before the cut; how many they were. Call it until it is 0."""
    newer = Change.objects.filter(
        Q(at__gt=OuterRef("at")) | Q(at=OuterRef("at"), id__gt=OuterRef("id")),
        cluster=OuterRef("cluster"),
        namespace=OuterRef("namespace"),
        name=OuterRef("name"),
        at__lt=before,
    )
    old = Change.objects.filter(
        Q(change=ChangeType.DELETED) | Exists(newer), at__lt=before
    ).values_list("pk", flat=True)
    found = list(old[:BATCH])
    Change.objects.filter(pk__in=found).delete()
    return len(found)
