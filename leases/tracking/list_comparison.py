"""Compare a list, page by page, with the known state of each Lease."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from leases.domain.lease import Lease
from leases.domain.steady_clock import Jump, moved
from leases.tracking.cluster_state import ClusterState
from leases.tracking.lease_index import Row, version_after
from leases.tracking.skipped_writes import failed_on
from leases.tracking.store_step import Step
from leases.wire.watch_events import Applied, Listed, ListPage

_EPOCH = datetime.fromtimestamp(0, UTC)


class ListComparison:
    """The list that is being read into one cluster's state."""

    def __init__(self, ledger: ClusterState) -> None:
        self._ledger = ledger
        self._number = 0  # of the last list
        self._version: str | None = None  # resourceVersion of the current list; None between lists
        self._since = _EPOCH  # when its first page was read
        self._listed = 0  # rows that it contained so far
        self._nameless = False  # it contains a Lease without a readable name

    def clock_jumped(self, jump: Jump) -> None:
        self._since = moved(self._since, jump.by)

    def take(self, page: ListPage | Listed, at: datetime, step: Step) -> None:
        """Apply a page. All its Leases count as of the first page."""
        if page.resource_version != self._version:  # a new list
            self._version = page.resource_version
            self._since = at - timedelta(seconds=page.age)
            self._number += 1
            self._listed, self._nameless = 0, False
        new: list[Row] = []
        for lease in page.leases:
            row = self._ledger.rows.get(lease.key)
            known, count = None if row is None else row.tracked, len(step.clues)
            try:
                self._take(row, lease, new, step)
            except Exception as error:
                del step.clues[count:]
                self._ledger.skipping.roll_back(lease.key, row, known)
                seen = failed_on(Applied(lease), error, known)
                self._note(self._ledger.skipping.skip(seen, at, step, error=error))
        for one in page.unreadable:
            self._note(self._ledger.skipping.skip(one, at, step))
        self._listed += len(new)
        self._ledger.enter(new, at, step)

    def complete(self, at: datetime, step: Step) -> datetime:
        """Remove the Leases that no page contained. Returns the time of the list."""
        rows = self._ledger.rows
        if self._listed < len(rows) and not self._nameless:
            gone = [row for row in rows if row.listing != self._number]
            self._ledger.vanish_all(gone, at, step)
        self._version = None
        return self._since

    def _take(self, row: Row | None, lease: Lease, new: list[Row], step: Step) -> None:
        """Apply one Lease. A row with a new name goes to `new`."""
        ledger, at = self._ledger, self._since
        if row is not None and row.tracked.lasting.not_understood is not None:
            row = ledger.understand(row, at, step)
        if row is None or row.tracked.lasting.lease.uid != lease.uid:
            if row is not None:
                ledger.vanish_unseen(row, lease, ledger.blind_times.listing(at, row.newest), step)
            unseen = ledger.blind_times.listing(at, None)
            new.append(ledger.appear(lease, unseen, step, listing=self._number))
            return
        self._note(row)
        if row.tracked.resource_version != lease.resource_version:
            ledger.relist(row, lease, at, step)
            row.version = version_after(lease.resource_version, row.version)

    def _note(self, row: Row | None) -> None:
        """Mark a row as listed; None: the list has a Lease without a readable name."""
        if row is None:
            self._nameless = True
            return
        self._listed += row.listing != self._number
        row.listing = self._number
