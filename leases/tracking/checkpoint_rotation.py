"""Choose which renewed Leases to write to the checkpoint next: a few at a time, in name order."""

from __future__ import annotations

from datetime import UTC, datetime

from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump, moved
from leases.tracking.lease_index import LeaseIndex


class CheckpointRotation:
    """Visits the Leases of one cluster in name order, again and again."""

    def __init__(self, rows: LeaseIndex) -> None:
        self._rows = rows
        self._last: ObjectName | None = None
        self._began = self._before = datetime.fromtimestamp(0, UTC)

    def clock_jumped(self, jump: Jump) -> None:
        """Move the times that are compared with observations, which moved as well."""
        self._before, self._began = moved(self._before, jump.by), moved(self._began, jump.by)

    def next(self, most: int, now: datetime) -> list[ObjectName]:
        """Return those of the next `most` Leases that were renewed since the last round began."""
        rows = self._rows.after(self._last, most)
        renewed = [row.key for row in rows if row.tracked.observed_at >= self._before]
        if len(rows) == most:
            self._last = rows[-1].key
        else:
            self._last, self._before, self._began = None, self._began, now
        return renewed
