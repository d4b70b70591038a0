"""Decide when a Lease counts as abandoned: nobody holds it, and nobody is expected to come back.

Two kinds of Leases are: those that are vacant for long, and those that were never renewed, neither
by a holder who came and expired nor by anybody at all. A heartbeat is never abandoned, because its
end tells of a stopped node, and a vacant lock is only free.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.bounded_time import plus
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.severity import VACANT_GRACE

DEFAULT_ABANDONED_AFTER = timedelta(hours=1)


def abandoned_from(
    phase: Phase,
    kind: Kind,
    *,
    since: datetime,
    renewed_at: datetime | None,
    held_since: datetime | None,
    threshold: timedelta,
) -> datetime | None:
    """Return from when a Lease counts as abandoned, unless somebody writes; None: never.

    It is in this phase since `since`. `renewed_at`: when it was renewed last; None: nobody ever
    held or renewed it. `held_since`: when the holder who expired came.
    """
    if kind is Kind.HEARTBEAT:
        return None
    if phase is Phase.VACANT and kind is not Kind.LOCK:
        if renewed_at is None:
            return plus(since, min(VACANT_GRACE, threshold))
        return plus(min(since, renewed_at), threshold)
    if phase is Phase.EXPIRED and renewed_at is not None and held_since is not None:
        return plus(since, threshold) if renewed_at <= held_since else None
    return None
