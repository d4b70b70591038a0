"""Delete old lines of the security log in small batches."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.models import SecurityRecord

KEPT_FOR = timedelta(days=365)
MAX_KEPT = 200_000  # lines; refused programs and exports could write many
BATCH = 500


def forget_security(now: datetime) -> int:
    """Delete one batch of what is too old or too much. Returns how many lines it deleted."""
    rows = SecurityRecord.objects.order_by("at", "id")
    doomed = list(rows.filter(at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:BATCH])
    if not doomed:
        surplus = min(max(SecurityRecord.objects.count() - MAX_KEPT, 0), BATCH)
        doomed = list(rows.values_list("pk", flat=True)[:surplus])
    return SecurityRecord.objects.filter(pk__in=doomed).delete()[0] if doomed else 0
