"""The current state of one cluster's Leases: events and the clock go in, updates come out.

Only the event loop writes; any thread may read `get`, `snapshot`, `select`, `counts`, `around`
and `connection`. `seq` counts the steps that changed more than freshness: an update of renewals
alone carries the last number.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from leases.domain.figures import DEFAULT_ABANDONED_AFTER
from leases.domain.kind import RENEWED_ALONE, Kind
from leases.domain.lease import ObjectName, number_of
from leases.domain.phase import Phase
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import Connection, ConnectionState
from leases.tracking.cluster_state import ClusterState, ListComparison, moved_connection
from leases.tracking.kind_overrides import NO_MARKS, Kinds, Marks, renewed_alone
from leases.tracking.lease_index import CheckpointRotation, Row, version_after
from leases.tracking.skipped_writes import failed_on
from leases.tracking.store_step import Step
from leases.tracking.tracked_lease import Tracked, Update
from leases.wire.watch_decoding import (
    Applied,
    Deleted,
    Listed,
    ListPage,
    Renewed,
    Unreadable,
    WatchEvent,
    read_event,
)

LISTING = timedelta(seconds=30)  # the first page may be this old when the last arrives
_EPOCH = datetime.fromtimestamp(0, UTC)


class Store:
    def __init__(
        self, cluster: str, *, abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER
    ) -> None:
        """`abandoned_after`: how long a Lease is without a holder before it counts as abandoned."""
        self.cluster = cluster
        self.abandoned_after = abandoned_after
        self.seq = 0
        self.connection = Connection(state=ConnectionState.CONNECTING, since=_EPOCH)
        self._ledger = ClusterState(cluster, abandoned_after)
        self._rows = self._ledger.rows
        self._blind_times = self._ledger.blind_times
        self.fingerprints = self._rows.by_fingerprint  # Leases whose next renewal is not decoded
        self.checkpoint_rotation = CheckpointRotation(self._rows)
        self._absent_at = 0  # a name without a row did not exist at this version
        self._listing = ListComparison(self._ledger)
        self.synced = False  # a list has been completed since the start
        self.unsure = False  # a Lease ran out in a silence: told once the cluster was asked
        self.snapshot, self.select = self._rows.snapshot, self._rows.select
        self.in_any_order = self._rows.in_any_order
        self.size = self._rows.__len__
        self.of_namespace, self.namespaces = self._rows.of_namespace, self._rows.namespaces
        self.counts, self.excused = self._rows.counts, self._rows.excused
        self.silences = self._ledger.silences
        self.near_misses = self._ledger.late_renewals.near_misses
        self.marks: Marks = self._ledger.overrides.marks  # the Leases that may be vacant
        self.around = self._rows.around
        self.lost, self.resumed = self._blind_times.lost, self._blind_times.resumed
        self.caught_up, self.missed = self._blind_times.caught_up, self._blind_times.missed
        self.follows = self._blind_times.follows
        self.next_deadline = self._ledger.deadlines.next

    def get(self, key: ObjectName) -> Tracked | None:
        row = self._rows.get(key)
        return row.tracked if row else None

    def understood(self, key: ObjectName) -> Tracked | None:
        """Return the last state that was understood, for the checkpoint."""
        known = self.get(key)
        skipped = None if known is None else known.lasting.not_understood
        return known if skipped is None else skipped.before

    def not_understood(self) -> list[Tracked]:
        """Return the Leases whose newest write could not be followed, oldest first."""
        return [row.tracked for row in list(self._ledger.skipping.puzzling.values())]

    @property
    def nameless_at(self) -> datetime | None:
        """When the last Lease without a readable name came."""
        return self._ledger.skipping.nameless_at

    @property
    def known(self) -> bool:
        """Whether there is anything to count: a list was read, or Leases were restored."""
        return self.synced or len(self._rows) > 0

    @property
    def heard_at(self) -> datetime | None:
        """When we last observed the cluster; after a restart, when the earlier run did."""
        return self._blind_times.heard

    @property
    def watched_since(self) -> datetime:
        """When the last time ended that nobody watched."""
        return self._blind_times.watched_since

    @property
    def behind(self) -> datetime | None:
        """Since when events may report the past; None while they report the present."""
        return self._blind_times.behind

    def restore(self, remembered: Iterable[Tracked], watched_until: datetime) -> None:
        """Start with the state of an earlier run. Later differences are inferred."""
        ledger = self._ledger
        rows = [
            ledger.row(ledger.judge_abandoned(one, watched_until), one.changed_at)
            for one in remembered
        ]
        ledger.enter(rows, watched_until, self._ledger.step())
        for row in rows:
            row.remembered = True
            ledger.overrides.remember(row.tracked)
        self._blind_times.heard = watched_until
        self._blind_times.lost(watched_until)

    def clock_jumped(self, jump: Jump) -> Update:
        """Move all times after the wall clock was set; nothing happened to any Lease."""
        self._listing.clock_jumped(jump)
        self.checkpoint_rotation.clock_jumped(jump)
        self._ledger.clock_jumped(jump)
        return self.connect(moved_connection(self.connection, jump.by), jump.after)

    def follow(
        self, events: Iterable[WatchEvent], at: datetime, *, inferred: bool = False
    ) -> Update | None:
        """Apply the events of one read of the watch; `inferred`: they are replayed after a restart.

        None: they changed nothing. Events that cannot be followed are skipped; each of the others
        counts once.
        """
        step = self._ledger.step()
        by_fingerprint, renew, fresh = self.fingerprints.get, self._ledger.renew, step.renewed
        for event in events:
            try:
                if type(event) is Renewed:
                    row = by_fingerprint(event.fingerprint)
                    if row is not None and renew(
                        row, event.version, event.renew_time, at, inferred
                    ):
                        fresh.append(row.key)
                        continue
                self._read(event, at, step, inferred=inferred)
            except Exception as error:
                self._fail(event, error, at, step)
        if fresh:
            self._blind_times.heard = at
        return self._update(step, at)

    def connect(self, connection: Connection, now: datetime) -> Update:
        self.connection = connection
        self.seq += 1
        return Update(cluster=self.cluster, now=now, seq=self.seq, connection=connection)

    def enter(self, page: ListPage, at: datetime) -> Update:
        """Apply a page of a list. All differences happened since we last observed the cluster."""
        step, first = self._ledger.step(), self.heard_at is None
        self._listing.take(page, at, step)
        self.seq += 1
        return step.update(self.cluster, self.seq, at, first=first)

    def replace(self, listed: Listed, at: datetime) -> Update:
        """Apply the last page of a list, and remove the Leases that no page contained."""
        step, first = self._ledger.step(), self.heard_at is None
        self._listing.take(listed, at, step)
        since = self._listing.complete(at, step)
        self._absent_at = version_after(listed.resource_version, 0)
        self._blind_times.listed(at, as_of=since)
        self.synced = True
        self._ledger.turn_due(at, by=at - LISTING, step=step)
        self.seq += 1
        return step.update(self.cluster, self.seq, at, listed=True, first=first)

    def set_overrides(self, kinds: Kinds, now: datetime, marks: Marks = NO_MARKS) -> Update | None:
        """Apply these kinds and marks of admins, and the rules to all other Leases."""
        step = self._ledger.step()
        self._ledger.set_overrides(kinds, marks, now, step)
        return self._update(step, now)

    def settle_kinds(self, now: datetime) -> Update | None:
        """Settle the guessed kinds of Leases that one holder has renewed for long."""
        held = self.in_any_order((Kind.ELECTION,), (Phase.HELD,))
        keys = renewed_alone(held, now, watched_since=self.watched_since)
        if not keys:
            return None
        step = self._ledger.step()
        for key in keys:
            row = self._rows.get(key)
            if row is not None:
                kind, reason = RENEWED_ALONE
                self._rows.put(row, row.tracked.replace(kind=kind, kind_reason=reason))
                step.redraw[key] = None
        return self._update(step, now)

    def take_back_late(self, heard_at: datetime, now: datetime) -> Update | None:
        """Nothing was heard since then: nobody knows who was late later."""
        step = self._ledger.step()
        for known in self.in_any_order(tuple(Kind), (Phase.LATE,)):
            row = self._rows.get(known.key)
            if row is not None and known.phase_since > heard_at:
                self._ledger.hold_again(row, step)
        return self._update(step, now)

    def turn(
        self, now: datetime, *, by: datetime | None = None, alive: datetime | None = None
    ) -> Update | None:
        """Change the phases that are due, at `by` if that is earlier. Emits `expired`.

        `alive`: until when the cluster was surely alive. What ran out later makes it `unsure`.
        """
        step = self._ledger.step()
        self.unsure = self._ledger.turn_due(now, by=by or now, step=step, alive=alive)
        return self._update(step, now)

    def _read(self, event: WatchEvent, at: datetime, step: Step, *, inferred: bool) -> None:
        """Apply an event that is not a renewal with a known fingerprint."""
        if type(event) is Renewed:
            event = read_event(event.line)
        if type(event) is Applied:
            row = self._rows.get(event.lease.key)
            if row is not None and self._ledger.renew_as(row, event, at, inferred):
                step.renewed.append(row.key)
                return
        if isinstance(event, Applied | Deleted):
            self._take(event, at, step, inferred=inferred)
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
        """After an exception: mark the Lease as not understood."""
        row = self.fingerprints.get(event.fingerprint) if isinstance(event, Renewed) else None
        seen = failed_on(event, error, None if row is None else row.tracked)
        self._ledger.skipping.skip(seen, at, step, error=error)

    def _take(self, event: Applied | Deleted, at: datetime, step: Step, *, inferred: bool) -> None:
        lease = event.lease
        meta = lease.metadata
        row = self._rows.get(ObjectName(meta.namespace, meta.name))
        known_version = self._absent_at if row is None else row.version
        version = version_after(meta.resource_version, known_version)
        if version <= known_version:
            return
        self._blind_times.heard = at
        known, count = None if row is None else row.tracked, len(step.clues)
        try:
            written = self._write(row, event, at, step, inferred=inferred)
        except Exception:
            del step.clues[count:]
            self._ledger.skipping.roll_back(lease.key, row, known)
            raise
        if written is not None:
            written.version = version
        else:
            self._absent_at = max(self._absent_at, version)

    def _write(
        self, row: Row | None, event: Applied | Deleted, at: datetime, step: Step, *, inferred: bool
    ) -> Row | None:
        """Apply a write. Returns the row; None if the Lease is deleted."""
        ledger, lease = self._ledger, event.lease
        step.line = event.line if type(event) is Applied else b""
        unseen_since = None
        if row is not None and (skipped := row.tracked.lasting.not_understood) is not None:
            row = ledger.understand(row, at, step)
            unseen_since = skipped.since if row is None else row.newest
        write = partial(ledger.write, inferred=inferred, step=step, unseen_since=unseen_since)
        if type(event) is Applied:
            return write(row, lease, at)
        if row is None or row.tracked.lasting.lease.uid != lease.uid:
            row = write(row, lease, at)
        if inferred or self._blind_times.behind is not None:
            seen = self._blind_times.event(at, row.newest, inferred=True)
            ledger.vanish_late(row, lease, seen, step)
            return None
        seen = self._blind_times.event(at, row.newest, inferred=False, unseen_since=unseen_since)
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
