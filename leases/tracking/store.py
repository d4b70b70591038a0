"""One cluster's Leases as they are now: events and the clock in, updates out.

One writer, on the event loop; any thread may read `get`, `snapshot`, `select`, `counts` and
`connection`.
`seq` counts the steps that changed more than freshness: an update of renewals alone carries the
number of the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

from leases.domain.connection import Connection, ConnectionState
from leases.domain.kind import Kind, Verdict
from leases.domain.lease import ObjectName, number_of
from leases.domain.phase import Phase
from leases.domain.steady_clock import Jump
from leases.tracking.checkpoint_rotation import CheckpointRotation
from leases.tracking.cluster_state import ClusterState
from leases.tracking.expiry.clock_jump import moved_connection
from leases.tracking.lease_index import Row, version_after
from leases.tracking.list_comparison import ListComparison
from leases.tracking.skipped_writes import failed_on
from leases.tracking.store_step import Step
from leases.tracking.tracked_lease import Tracked, Update
from leases.wire.watch_decoding import read_event
from leases.wire.watch_events import (
    Applied,
    Deleted,
    Listed,
    ListPage,
    Renewed,
    Unreadable,
    WatchEvent,
)

LISTING = timedelta(seconds=30)  # the first page of a list may be so old when its last one comes
_EPOCH = datetime.fromtimestamp(0, UTC)


class Store:
    """Every Lease of one cluster, compared with what comes."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.seq = 0
        self.connection = Connection(state=ConnectionState.CONNECTING, since=_EPOCH)
        self._ledger = ClusterState(cluster)
        self._rows = self._ledger.rows
        self._blind_times = self._ledger.blind_times
        self.fingerprints = (
            self._rows.by_fingerprint
        )  # of Leases whose next renewal need not be decoded
        self.checkpoint_rotation = CheckpointRotation(self._rows)
        self._absent_at = 0  # a name not in the rows was not there at this version
        self._listing = ListComparison(self._ledger)
        self.synced = False  # a complete list has been read since the start

    def get(self, key: ObjectName) -> Tracked | None:
        row = self._rows.get(key)
        return row.tracked if row else None

    def understood(self, key: ObjectName) -> Tracked | None:
        """A Lease as it was understood last: what the next start is to go on from."""
        known = self.get(key)
        skipped = None if known is None else known.lasting.not_understood
        return known if skipped is None else skipped.before

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

    def not_understood(self) -> list[Tracked]:
        """The Leases whose newest write could not be followed, the first such first."""
        return [row.tracked for row in list(self._ledger.skipping.puzzling.values())]

    @property
    def nameless_at(self) -> datetime | None:
        """When a Lease last came of which not even the name could be read."""
        return self._ledger.skipping.nameless_at

    @property
    def known(self) -> bool:
        """Whether there is anything to count: a list was read, or Leases are remembered."""
        return self.synced or len(self._rows) > 0

    @property
    def heard_at(self) -> datetime | None:
        """When we last saw what there is; after a restart, when the earlier run did."""
        return self._blind_times.heard

    @property
    def behind(self) -> datetime | None:
        """Since when events may tell of the past; None while they tell of the present."""
        return self._blind_times.behind

    def next_deadline(self) -> datetime | None:
        """When `turn` may have something to do; not later than that."""
        return self._ledger.deadlines.next()

    def restore(self, remembered: Iterable[Tracked], watched_until: datetime) -> None:
        """Begin with what an earlier run knew; what happened since is inferred."""
        ledger = self._ledger
        rows = [ledger.row(tracked, tracked.observed_at) for tracked in remembered]
        ledger.enter(rows, watched_until, Step())
        for row in rows:
            row.remembered = True
            ledger.overrides.remember(row.tracked)
        self._blind_times.heard = watched_until
        self._blind_times.lost(watched_until)

    def lost(self, since: datetime) -> None:
        """Nothing has been seen since then: events tell of the past, until `caught_up`."""
        self._blind_times.lost(since)

    def resumed(self, at: datetime) -> None:
        """The watch goes on where it stopped; what ran out unseen is inferred."""
        self._blind_times.resumed(at)

    def caught_up(self) -> None:
        """Events tell of the present again."""
        self._blind_times.caught_up()

    def clock_jumped(self, jump: Jump) -> Update:
        """The wall clock was set: nothing happened to any Lease."""
        self._listing.clock_jumped(jump)
        self.checkpoint_rotation.clock_jumped(jump)
        self._ledger.clock_jumped(jump)
        return self.connect(moved_connection(self.connection, jump.by), jump.after)

    def apply(
        self, event: Applied | Deleted | Unreadable, at: datetime, *, inferred: bool = False
    ) -> Update | None:
        """One event of the watch, or one `inferred` that is told again; None if it is no news."""
        if not inferred or isinstance(event, Unreadable):
            return self.follow((event,), at)
        step = Step()
        try:
            self._take(event, at, step, inferred=True)
        except Exception as error:
            self._fail(event, error, at, step)
        return self._update(step, at)

    def follow(self, events: Iterable[WatchEvent], at: datetime) -> Update | None:
        """What one reading of the watch brought; None if none of it is news.

        What cannot be followed is skipped: the rest counts, each event once.
        """
        step = Step()
        by_fingerprint, renew, fresh = self.fingerprints.get, self._ledger.renew, step.renewed
        for event in events:
            try:
                if type(event) is Renewed:
                    row = by_fingerprint(event.fingerprint)
                    if row is not None and renew(row, event.version, event.renew_time, at):
                        fresh.append(row.key)
                        continue
                self._read(event, at, step)
            except Exception as error:
                self._fail(event, error, at, step)
        if fresh:
            self._blind_times.heard = at
        return self._update(step, at)

    def connect(self, connection: Connection, now: datetime) -> Update:
        """Keep how the watch stands, and tell it."""
        self.connection = connection
        self.seq += 1
        return Update(cluster=self.cluster, now=now, seq=self.seq, connection=connection)

    def enter(self, page: ListPage, at: datetime) -> Update:
        """A page of a list: whatever differs from what we knew happened since we last watched."""
        step = Step()
        self._listing.take(page, at, step)
        self.seq += 1
        return step.update(self.cluster, self.seq, at, partial=True)

    def replace(self, listed: Listed, at: datetime) -> Update:
        """The last page: what was in no page is gone."""
        step = Step()
        self._listing.take(listed, at, step)
        since = self._listing.complete(at, step)
        self._absent_at = version_after(listed.resource_version, 0)
        self._blind_times.listed(at, as_of=since)
        self.synced = True
        self._ledger.turn_due(at, by=at - LISTING, step=step)
        self.seq += 1
        return step.update(self.cluster, self.seq, at, listed=True)

    def set_overrides(self, wanted: Mapping[ObjectName, Verdict], now: datetime) -> Update | None:
        """From now on these Leases are what admins say, and all others what the rules say."""
        step = Step()
        self._ledger.set_overrides(wanted, now, step)
        return self._update(step, now)

    def turn(self, now: datetime, *, by: datetime | None = None) -> Update | None:
        """Turn the phases whose time has come, `by` then if that is earlier; tells `expired`."""
        step = Step()
        self._ledger.turn_due(now, by=by or now, step=step)
        return self._update(step, now)

    def _read(self, event: WatchEvent, at: datetime, step: Step) -> None:
        """What is no renewal known by its mark."""
        if type(event) is Renewed:
            event = read_event(event.line)
        if type(event) is Applied:
            row = self._rows.get(event.lease.key)
            if row is not None and self._ledger.renew_as(row, event.lease, event.fingerprint, at):
                step.renewed.append(row.key)
                return
        if isinstance(event, Applied | Deleted):
            self._take(event, at, step)
        elif isinstance(event, Unreadable):
            self._skip(event, at, step)

    def _skip(self, event: Unreadable, at: datetime, step: Step) -> None:
        row = None if event.key is None else self._rows.get(event.key)
        version = number_of(event.resource_version)
        if version and version <= (self._absent_at if row is None else row.version):
            return
        self._blind_times.heard = at
        self._ledger.skipping.skip(event, at, step)

    def _fail(self, event: WatchEvent, error: Exception, at: datetime, step: Step) -> None:
        """An event that raised has changed nothing but that its Lease is not understood."""
        row = self.fingerprints.get(event.fingerprint) if isinstance(event, Renewed) else None
        seen = failed_on(event, error, None if row is None else row.tracked)
        self._ledger.skipping.skip(seen, at, step, error=error)

    def _take(
        self, event: Applied | Deleted, at: datetime, step: Step, *, inferred: bool = False
    ) -> None:
        lease = event.lease
        meta = lease.metadata
        row = self._rows.get(ObjectName(meta.namespace, meta.name))
        known_version = self._absent_at if row is None else row.version
        version = version_after(meta.resource_version, known_version)
        if version <= known_version:
            return
        self._blind_times.heard = at
        known, count = None if row is None else row.tracked, len(step.changes)
        try:
            written = self._write(row, event, at, step, inferred=inferred)
        except Exception:
            del step.changes[count:]
            self._ledger.skipping.roll_back(lease.key, row, known)
            raise
        if written is not None:
            written.version = version
        else:
            self._absent_at = max(self._absent_at, version)

    def _write(
        self, row: Row | None, event: Applied | Deleted, at: datetime, step: Step, *, inferred: bool
    ) -> Row | None:
        """A write of a Lease; its row, None if it is gone."""
        ledger, lease = self._ledger, event.lease
        unseen_since = None
        if row is not None and (skipped := row.tracked.lasting.not_understood) is not None:
            row = ledger.understand(row, at, step)
            unseen_since = skipped.since if row is None else row.newest
        write = partial(ledger.write, inferred=inferred, step=step, unseen_since=unseen_since)
        if type(event) is Applied:
            return write(row, lease, at)
        if row is None or row.tracked.lasting.lease.uid != lease.uid:
            row = write(row, lease, at)
        seen = self._blind_times.event(at, row.newest, inferred=inferred, unseen_since=unseen_since)
        if seen.live:
            ledger.turn(row, at, by=at, step=step)
        ledger.vanish(row, lease, seen, at, step)
        return None

    def _update(self, step: Step, at: datetime) -> Update | None:
        if step.is_news:
            self.seq += 1
        elif not step.renewed:
            return None
        return step.update(self.cluster, self.seq, at)
