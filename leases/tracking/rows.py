"""The rows of one cluster: by name, in name order, and counted, all kept up to date by each step.

One writer; any thread may read.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import datetime

from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.tracking.deadlines import Alarm
from leases.tracking.tracked import Tracked

INSERTED_SINGLY = 100  # more new rows than this are sorted in together


class Row(Alarm, kw_only=True, gc=False):
    """One Lease, with its alarm. Nothing but the store changes it."""

    tracked: Tracked
    version: int  # of the newest write known
    told_at: datetime  # when the newest change told happened

    @property
    def newest(self) -> datetime:
        """What a later write did happened after this."""
        return max(self.told_at, self.tracked.observed_at)


class Rows:
    """Every Lease of one cluster."""

    def __init__(self) -> None:
        self._by_name: dict[ObjectName, Row] = {}
        self._in_order: list[Row] = []
        self._counts = {kind: dict.fromkeys(Phase, 0) for kind in Kind}
        self.get = self._by_name.get

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._by_name.values())

    def add(self, *rows: Row) -> None:
        """Take in rows of names not known yet."""
        for row in rows:
            self._by_name[row.key] = row
            self._counts[row.tracked.kind][row.tracked.phase] += 1
        if len(rows) > INSERTED_SINGLY:
            self._in_order = sorted((*self._in_order, *rows), key=_name)
        else:
            for row in rows:
                insort(self._in_order, row, key=_name)

    def remove(self, row: Row) -> None:
        """Forget a row."""
        del self._by_name[row.key]
        del self._in_order[bisect_left(self._in_order, row.key, key=_name)]
        self._counts[row.tracked.kind][row.tracked.phase] -= 1

    def put(self, row: Row, tracked: Tracked) -> None:
        """What is known of a row from now on."""
        before = row.tracked
        if before.phase is not tracked.phase or before.kind is not tracked.kind:
            self._counts[before.kind][before.phase] -= 1
            self._counts[tracked.kind][tracked.phase] += 1
        row.tracked = tracked

    def snapshot(self) -> tuple[Tracked, ...]:
        """All of them in name order, as they are now."""
        rows = tuple(self._in_order)  # at once, so that the writer may go on
        return tuple([row.tracked for row in rows])

    def counts(self) -> dict[Kind, dict[Phase, int]]:
        return {kind: dict(phases) for kind, phases in self._counts.items()}


def _name(row: Row) -> ObjectName:
    return row.key
