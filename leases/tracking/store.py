"""One cluster's Leases as they are now: events and the clock in, updates out.

One writer, on the event loop; any thread may read `get`, `snapshot`, `counts` and `connection`. `seq` counts
the steps that changed more than freshness: an update of renewals alone carries the number of the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from leases.domain.change import Change, vanished
from leases.domain.connection import Connection, ConnectionState
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.domain.sighting import Sighting, renewal_moved, written_at
from leases.tracking.deadlines import Deadlines
from leases.tracking.observe import first_sight, next_sight, renewed, turn_of, turned
from leases.tracking.rows import Row, Rows
from leases.tracking.tracked import Tracked, Update
from leases.wire.events import Applied, Deleted, Listed

BRIEF = timedelta(seconds=2)  # a connection lost for no longer leaves no verdict in doubt
LISTING = timedelta(seconds=30)  # the first page of a list may be so old when its last one comes
REMEMBERED_DEATHS = 10_000  # deletions kept to tell the gap that a re-creation ends
_EPOCH = datetime.fromtimestamp(0, UTC)


class _Unseen(msgspec.Struct, frozen=True, gc=False):
    """A time in which we saw nothing; `since` is None before the first list."""

    since: datetime | None
    until: datetime


class _Step:
    """What one step has changed so far."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.redraw: dict[ObjectName, None] = {}
        self.renewed: dict[ObjectName, None] = {}
        self.removed: dict[ObjectName, None] = {}


class Store:
    """Every Lease of one cluster, compared with what comes."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.seq = 0
        self.connection = Connection(state=ConnectionState.CONNECTING, since=_EPOCH)
        self._rows = Rows()
        self._deadlines: Deadlines[Row] = Deadlines()
        self._deaths: dict[ObjectName, datetime] = {}  # since when nobody held what is gone
        self._absent_at = 0  # a name not in the rows was not there at this version
        self._heard: datetime | None = None
        self._behind: datetime | None = None  # since when events may tell of the past
        self._unseen: _Unseen | None = None

    def get(self, key: ObjectName) -> Tracked | None:
        row = self._rows.get(key)
        return row.tracked if row else None

    def snapshot(self) -> tuple[Tracked, ...]:
        """All Leases in name order."""
        return self._rows.snapshot()

    def counts(self) -> dict[Kind, dict[Phase, int]]:
        return self._rows.counts()

    def next_deadline(self) -> datetime | None:
        """When `turn` may have something to do; not later than that."""
        return self._deadlines.next()

    def restore(self, remembered: Iterable[Tracked], watched_until: datetime) -> None:
        """Begin with what an earlier run knew; what happened since is inferred."""
        rows = [self._row(tracked, tracked.observed_at) for tracked in remembered]
        self._rows.add(*rows)
        for row in rows:
            self._deadlines.arm(row, turn_of(row.tracked))
        self._behind = self._heard = watched_until

    def lost(self, since: datetime) -> None:
        """Nothing has been seen since then: what comes next tells of the past, until `caught_up`."""
        self._behind = self._behind or since

    def resumed(self, at: datetime) -> None:
        """The watch goes on where it stopped; what ran out unseen is inferred."""
        if self._behind is not None and at - self._behind > BRIEF:
            self._unseen = _Unseen(self._behind, at)

    def caught_up(self) -> None:
        """Events tell of the present again."""
        self._behind = None

    def apply(
        self, event: Applied | Deleted, at: datetime, *, inferred: bool = False
    ) -> Update | None:
        """One event of the watch; None when it tells nothing new. `inferred`: told again after a restart."""
        lease = event.lease
        row = self._rows.get(lease.key)
        known_version = self._absent_at if row is None else row.version
        version = _number(lease.metadata.resource_version, known_version)
        if version <= known_version:
            return None
        self._heard = at
        if row is not None and self._behind is None and not inferred and type(event) is Applied:
            fresh = self._renew(row, lease, version, at)
            if fresh is not None:
                return fresh
        step = _Step()
        if type(event) is Applied or row is None or row.tracked.lease.uid != lease.uid:
            row = self._apply(row, lease, at, inferred=inferred, step=step)
        if type(event) is Deleted:
            seen = self._sighting(at, row, inferred=inferred)
            if seen.live:
                self._turn(row, at, by=at, step=step)
            self._vanish(row, lease, seen, at, step)
            self._absent_at = max(self._absent_at, version)
        else:
            row.version = version
        return self._update(step, at)

    def replace(self, listed: Listed, at: datetime) -> Update:
        """A complete list: whatever differs from what we knew happened since we last watched."""
        since = self._behind or self._heard
        step = _Step()
        new: list[Row] = []
        gone = {row.key: row for row in self._rows}
        for lease in listed.leases:
            row = gone.pop(lease.key, None)
            if row is not None and row.tracked.lease.uid == lease.uid:
                if row.tracked.lease.resource_version != lease.resource_version:
                    seen = _listing(at, since, row)
                    self._advance(row, lease, seen, step)
                    row.version = _number(lease.resource_version, row.version)
                continue
            if row is not None:
                self._vanish_unseen(row, lease, _listing(at, since, row), step)
            tracked, change = first_sight(self.cluster, lease, _listing(at, since, None))
            step.changes.append(change)
            new.append(self._row(tracked, change.at))
        for row in gone.values():
            self._vanish(row, row.tracked.lease, _listing(at, since, row), at, step)
        self._enter(new)
        self._absent_at = _number(listed.resource_version, 0)
        self._heard, self._behind, self._unseen = at, None, _Unseen(since, at)
        self._turn_all(at, by=at - LISTING, step=step)
        update = self._update(step, at, listed=True)
        assert update is not None  # a list is always news
        return update

    def turn(self, now: datetime) -> Update | None:
        """Turn the phases whose time has come; tells `expired`."""
        step = _Step()
        self._turn_all(now, by=now, step=step)
        return self._update(step, now)
