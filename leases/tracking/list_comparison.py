"""A list, page by page, compared with what was known of each Lease."""

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
    """The list that is being read into one cluster's ledger."""

    def __init__(self, ledger: ClusterState) -> None:
        self._ledger = ledger
        self._number = 0  # of the last list
        self._version: str | None = None  # of the list that has begun; None between lists
        self._since = _EPOCH  # when its first page came, which may be told later
        self._listed = 0  # rows it has had so far
        self._nameless = False  # it has a Lease of which not even the name can be read

    def clock_jumped(self, jump: Jump) -> None:
        """The wall clock was set while the list is read."""
        self._since = moved(self._since, jump.by)

    def take(self, page: ListPage | Listed, at: datetime, step: Step) -> None:
        """Leases as a list has them: all as of its first page."""
        if page.resource_version != self._version:  # else of a list that has begun
            self._version = page.resource_version
            self._since = at - timedelta(seconds=page.age)
            self._number += 1
            self._listed, self._nameless = 0, False
        new: list[Row] = []
        for lease in page.leases:
            row = self._ledger.rows.get(lease.key)
            known, count = None if row is None else row.tracked, len(step.changes)
            try:
                self._take(row, lease, new, step)
            except Exception as error:
                del step.changes[count:]
                self._ledger.skipping.roll_back(lease.key, row, known)
                seen = failed_on(Applied(lease), error, known)
                self._note(self._ledger.skipping.skip(seen, at, step, error=error))
        for one in page.unreadable:
            self._note(self._ledger.skipping.skip(one, at, step))
        self._listed += len(new)
        self._ledger.enter(new, at, step)

    def complete(self, at: datetime, step: Step) -> datetime:
        """What was in no page is gone; as of when the list is."""
        rows = self._ledger.rows
        if self._listed < len(rows) and not self._nameless:
            gone = [row for row in rows if row.listing != self._number]
            self._ledger.vanish_all(gone, at, step)
        self._version = None
        return self._since

    def _take(self, row: Row | None, lease: Lease, new: list[Row], step: Step) -> None:
        """One Lease. A row for a name not known goes to the `new` ones."""
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
        """The list has this row; None: it has one of which the name cannot be read."""
        if row is None:
            self._nameless = True
            return
        self._listed += row.listing != self._number
        row.listing = self._number
