"""One cluster's Leases as they are now: events and the clock in, updates out.

One writer, on the event loop; any thread may read `get`, `snapshot`, `select`, `counts` and
`connection`.
`seq` counts the steps that changed more than freshness: an update of renewals alone carries the
number of the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from leases.domain.change import vanished
from leases.domain.connection import Connection, ConnectionState
from leases.domain.kind import Kind
from leases.domain.lease import Lease, ObjectName
from leases.domain.phase import Phase
from leases.domain.sighting import Sighting, renewal_moved, written_at
from leases.tracking.deadlines import Deadlines
from leases.tracking.observe import (
    first_sight,
    may_turn_sooner,
    next_sight,
    renewed,
    turn_of,
    turned,
)
from leases.tracking.rows import Row, Rows
from leases.tracking.step import Step
from leases.tracking.tracked import Tracked, Update
from leases.tracking.window import Window
from leases.wire.events import Applied, Deleted, Listed

LISTING = timedelta(seconds=30)  # the first page of a list may be so old when its last one comes
REMEMBERED_DEATHS = 10_000  # deletions kept to tell the gap that a re-creation ends
_EPOCH = datetime.fromtimestamp(0, UTC)


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
        self._window = Window()
        self.synced = False  # a complete list has been read since the start

    def get(self, key: ObjectName) -> Tracked | None:
        row = self._rows.get(key)
        return row.tracked if row else None

    def snapshot(self) -> tuple[Tracked, ...]:
        """All Leases in name order."""
        return self._rows.snapshot()

    def select(self, kinds: Collection[Kind], phases: Collection[Phase]) -> Iterator[Tracked]:
        """The Leases of these kinds and phases in name order."""
        return self._rows.select(kinds, phases)

    def of_namespace(self, namespace: str) -> tuple[Tracked, ...]:
        """The Leases of one namespace in name order."""
        return self._rows.of_namespace(namespace)

    def namespaces(self) -> list[str]:
        """The namespaces that have Leases, in order."""
        return self._rows.namespaces()

    def counts(self) -> dict[Kind, dict[Phase, int]]:
        return self._rows.counts()

    @property
    def heard_at(self) -> datetime | None:
        """When we last saw what there is; after a restart, when the earlier run did."""
        return self._window.heard

    def next_deadline(self) -> datetime | None:
        """When `turn` may have something to do; not later than that."""
        return self._deadlines.next()

    def restore(self, remembered: Iterable[Tracked], watched_until: datetime) -> None:
        """Begin with what an earlier run knew; what happened since is inferred."""
        rows = [self._row(tracked, tracked.observed_at) for tracked in remembered]
        self._rows.add(*rows)
        for row in rows:
            self._deadlines.arm(row, turn_of(row.tracked))
        self._window.heard = watched_until
        self._window.lost(watched_until)

    def lost(self, since: datetime) -> None:
        """Nothing has been seen since then: events tell of the past, until `caught_up`."""
        self._window.lost(since)

    def resumed(self, at: datetime) -> None:
        """The watch goes on where it stopped; what ran out unseen is inferred."""
        self._window.resumed(at)

    def caught_up(self) -> None:
        """Events tell of the present again."""
        self._window.caught_up()

    def apply(
        self, event: Applied | Deleted, at: datetime, *, inferred: bool = False
    ) -> Update | None:
        """One event of the watch, or one `inferred` that is told again; None if it is no news."""
        lease = event.lease
        row = self._rows.get(lease.key)
        known_version = self._absent_at if row is None else row.version
        version = _number(lease.metadata.resource_version, known_version)
        if version <= known_version:
            return None
        self._window.heard = at
        if row is not None and not inferred and type(event) is Applied:
            fresh = self._renew(row, lease, version, at)
            if fresh is not None:
                return fresh
        step = Step()
        if type(event) is Applied or row is None or row.tracked.lease.uid != lease.uid:
            row = self._apply(row, lease, at, inferred=inferred, step=step)
        if type(event) is Deleted:
            seen = self._window.event(at, row.newest, inferred=inferred)
            if seen.live:
                self._turn(row, at, by=at, step=step)
            self._vanish(row, lease, seen, at, step)
            self._absent_at = max(self._absent_at, version)
        else:
            row.version = version
        return self._update(step, at)

    def connect(self, connection: Connection, now: datetime) -> Update:
        """Keep how the watch stands, and tell it."""
        self.connection = connection
        self.seq += 1
        return Update(cluster=self.cluster, now=now, seq=self.seq, connection=connection)

    def replace(self, listed: Listed, at: datetime) -> Update:
        """A complete list: whatever differs from what we knew happened since we last watched."""
        step = Step()
        new: list[Row] = []
        gone = {row.key: row for row in self._rows}
        for lease in listed.leases:
            row = gone.pop(lease.key, None)
            if row is not None and row.tracked.lease.uid == lease.uid:
                if row.tracked.lease.resource_version != lease.resource_version:
                    seen = self._window.listing(at, row.newest)
                    self._advance(row, lease, seen, step)
                    row.version = _number(lease.resource_version, row.version)
                continue
            if row is not None:
                self._vanish_unseen(row, lease, self._window.listing(at, row.newest), step)
            tracked, change = first_sight(self.cluster, lease, self._window.listing(at, None))
            step.changes.append(change)
            step.redraw[lease.key] = None
            step.removed.pop(lease.key, None)
            self._deaths.pop(lease.key, None)
            new.append(self._row(tracked, change.at))
        for row in gone.values():
            self._vanish(row, row.tracked.lease, self._window.listing(at, row.newest), at, step)
        self._enter(new)
        self._absent_at = _number(listed.resource_version, 0)
        self._window.listed(at)
        self.synced = True
        self._turn_all(at, by=at - LISTING, step=step)
        self.seq += 1
        return step.update(self.cluster, self.seq, at, listed=True)

    def turn(self, now: datetime) -> Update | None:
        """Turn the phases whose time has come; tells `expired`."""
        step = Step()
        self._turn_all(now, by=now, step=step)
        return self._update(step, now)

    def _renew(self, row: Row, lease: Lease, version: int, at: datetime) -> Update | None:
        """The plain renewal: phase, kind and counts stay, and its alarm mostly too."""
        known = row.tracked
        if self._window.behind is not None or known.lease.metadata.uid != lease.metadata.uid:
            return None
        tracked = renewed(known, lease, at)
        if tracked is None:
            return None
        row.tracked = tracked
        row.version = version
        if may_turn_sooner(known, tracked):
            self._deadlines.arm(row, turn_of(tracked))
        return Update(cluster=self.cluster, now=at, seq=self.seq, renewed=(row.key,))

    def _apply(
        self, row: Row | None, lease: Lease, at: datetime, *, inferred: bool, step: Step
    ) -> Row:
        """A Lease as a watch event tells it."""
        if row is not None and row.tracked.lease.uid == lease.uid:
            seen = self._window.event(at, row.newest, inferred=inferred)
            self._advance(row, lease, seen, step)
            return row
        if row is not None:
            unseen = Sighting(now=at, since=min(at, row.newest), inferred=True)
            self._vanish_unseen(row, lease, unseen, step)
        seen = self._window.event(at, None, inferred=inferred)
        gap_since = self._deaths.pop(lease.key, None)
        tracked, change = first_sight(self.cluster, lease, seen, gap_since=gap_since)
        step.changes.append(change)
        row = self._row(tracked, change.at)
        self._enter([row])
        step.redraw[row.key] = None
        step.removed.pop(row.key, None)
        return row

    def _advance(self, row: Row, lease: Lease, seen: Sighting, step: Step) -> None:
        """A later write of a known uid."""
        if not seen.inferred:
            at, sure = written_at(row.tracked, lease, seen)
            if sure:
                self._turn(row, seen.now, by=at, step=step)
        known = row.tracked
        tracked, changes = next_sight(self.cluster, known, lease, seen)
        self._rows.put(row, tracked)
        self._deadlines.arm(row, turn_of(tracked))
        if changes:
            step.changes.extend(changes)
            row.told_at = max(change.at for change in changes)
        fresher = renewal_moved(known.lease, lease) and not changes
        if fresher and (tracked.phase, tracked.kind) == (known.phase, known.kind):
            step.renewed[row.key] = None
        else:
            step.redraw[row.key] = None

    def _vanish(self, row: Row, last: Lease, seen: Sighting, at: datetime, step: Step) -> None:
        known = row.tracked
        step.changes.append(vanished(self.cluster, known, last, seen=seen, at=at))
        step.removed[row.key] = None
        self._rows.remove(row)
        self._deadlines.disarm(row)
        gap_since = known.gap_since or (None if seen.inferred else at)
        if gap_since is not None:
            self._deaths[row.key] = gap_since
            if len(self._deaths) > REMEMBERED_DEATHS:
                del self._deaths[next(iter(self._deaths))]

    def _vanish_unseen(self, row: Row, successor: Lease, seen: Sighting, step: Step) -> None:
        """Another uid stands where this one was: it was deleted before that was created."""
        born = successor.metadata.creation_timestamp
        known_birth = born is not None and seen.since is not None and seen.since <= born <= seen.now
        at = born if known_birth and born is not None else seen.now
        self._vanish(row, row.tracked.lease, seen, at, step)

    def _turn_all(self, now: datetime, *, by: datetime, step: Step) -> None:
        for row in self._deadlines.due(by):
            self._turn(row, now, by=by, step=step)

    def _turn(self, row: Row, now: datetime, *, by: datetime, step: Step) -> None:
        known = row.tracked
        turn = turn_of(known)
        if turn is not None and turn <= by:
            unseen_since = self._window.unseen_since(known, now)
            tracked, change = turned(self.cluster, known, now, by=by, unseen_since=unseen_since)
            self._rows.put(row, tracked)
            step.redraw[row.key] = None
            if change is not None:
                step.changes.append(change)
                row.told_at = change.at
            turn = turn_of(tracked)
        self._deadlines.arm(row, turn)

    def _enter(self, rows: list[Row]) -> None:
        self._rows.add(*rows)
        for row in rows:
            self._deadlines.arm(row, turn_of(row.tracked))

    def _row(self, tracked: Tracked, told_at: datetime) -> Row:
        version = _number(tracked.lease.resource_version, 0)
        return Row(key=tracked.key, tracked=tracked, version=version, told_at=told_at)

    def _update(self, step: Step, at: datetime) -> Update | None:
        if step.tells:
            self.seq += 1
        elif not step.renewed:
            return None
        return step.update(self.cluster, self.seq, at)


def _number(resource_version: str, last: int) -> int:
    """resourceVersions are decimal and grow over the whole server; any other one is new."""
    return int(resource_version) if resource_version.isdecimal() else last + 1
