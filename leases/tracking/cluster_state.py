"""The state of one cluster's Leases, and how a write, a list or the clock changes it.

Ages, remaining times and gaps stay the same. What a Lease itself says (renewTime, acquireTime)
stays: it is by its writer's clock.

The store calls it once it has checked the resourceVersion. Changes are collected in a Step.
"""

from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec

from leases.domain.cause.clue import is_renewed_by_hand
from leases.domain.change import (
    Observation,
    believed,
    last_sign,
    renewal_moved,
    vanished,
    written_at,
)
from leases.domain.figures import abandoned_from
from leases.domain.lease import Lease, ObjectName, number_of
from leases.domain.phase import EMPTY, Phase, next_turn
from leases.domain.steady_clock import Jump, moved, plus
from leases.domain.watched_times import Connection
from leases.tracking.deadlines import SPAN, UNKNOWN, BlindTimes, Deadlines, outlook, ran_out_between
from leases.tracking.kind_overrides import DeletedKinds, Kinds, Marks, Overrides
from leases.tracking.lease_index import LeaseIndex, Row, version_after
from leases.tracking.observation import (
    first_sight,
    listed_renewed,
    next_sight,
    only_renewed,
    renewed,
    turned,
)
from leases.tracking.renewals import LateRenewals, Silences
from leases.tracking.skipped_writes import Skipping, failed_on
from leases.tracking.store_step import Step
from leases.tracking.tracked_lease import NotUnderstood, Tracked
from leases.wire.watch_decoding import Applied, Listed, ListPage, managers_of_event


def abandonment(known: Tracked, threshold: timedelta) -> datetime | None:
    """Return from when a Lease counts as abandoned unless somebody writes it.

    None: it does already, it cannot, or an admin said that it may be vacant.
    """
    lasting = known.lasting
    if lasting.phase not in (Phase.VACANT, Phase.EXPIRED):
        return None
    if lasting.abandoned or known.excused:
        return None
    return abandoned_from(
        lasting.phase,
        lasting.kind,
        since=lasting.phase_since,
        renewed_at=known.renewed_at if lasting.named or known.renew_time else None,
        held_since=lasting.held_since,
        threshold=threshold,
    )


def judged_abandoned(known: Tracked, now: datetime, threshold: timedelta) -> Tracked:
    """Judge anew whether a Lease is abandoned at `now`."""
    judged = known.replace(abandoned=False) if known.lasting.abandoned else known
    since = abandonment(judged, threshold)
    return judged if since is None or since > now else judged.replace(abandoned=True)


_replace = msgspec.structs.replace


def reanchor(row: Row, by: timedelta) -> datetime | None:
    """Move the times of one Lease. Returns when its phase changes.

    Its next renewal is judged in full: the writer's clock may have jumped with ours.
    """
    row.tracked = reanchored(row.tracked, by)
    row.changed_at = moved(row.changed_at, by)
    row.armed = None
    row.outlook = UNKNOWN
    return None if row.tracked.lasting.not_understood else next_turn(row.tracked)


def reanchored(known: Tracked, by: timedelta) -> Tracked:
    """Return a state with moved times, and without the clock skew, which is unknown now."""
    return known.replace(
        observed_at=moved(known.observed_at, by),
        lags=EMPTY,
        phase_since=moved(known.phase_since, by),
        held_since=moved(known.held_since, by),
        gap_since=moved(known.gap_since, by),
        lapses=tuple((moved(since, by), moved(until, by)) for since, until in known.lapses),
        renewed_at=moved(known.lasting.renewed_at, by),
        not_understood=_not_understood(known.lasting.not_understood, by),
    )


def _not_understood(state: NotUnderstood | None, by: timedelta) -> NotUnderstood | None:
    if state is None:
        return None
    before = None if state.before is None else reanchored(state.before, by)
    return _replace(state, since=moved(state.since, by), at=moved(state.at, by), before=before)


def moved_connection(stood: Connection, by: timedelta) -> Connection:
    since, heard_at = moved(stood.since, by), moved(stood.heard_at, by)
    return _replace(stood, since=since, heard_at=heard_at, behind_seconds=None)


class Death(msgspec.Struct, frozen=True, gc=False):
    """Of a Lease that may be created anew."""

    at: datetime
    lost_at: datetime | None  # when it was last validly held; None: unknown, or nobody held it


REMEMBERED_DEATHS = 10_000  # kept to measure the gap that a re-creation ends
# At most this much work per check of the deadlines; the rest waits for the next check.
MAX_LOOKED_AT = 400
A_TURN = 10  # cost of a phase change, in units of finding that a Lease was renewed meanwhile


class ClusterState:
    """Every Lease of one cluster with its deadline, and the times without observation."""

    def __init__(self, cluster: str, abandoned_after: timedelta) -> None:
        self.cluster = cluster
        self.judge_abandoned = partial(judged_abandoned, threshold=abandoned_after)
        self._abandonment = partial(abandonment, threshold=abandoned_after)
        self.rows = LeaseIndex()
        self.deadlines: Deadlines[Row] = Deadlines()
        self.blind_times = BlindTimes()
        self.overrides = Overrides()
        self.skipping = Skipping(self.rows, self.deadlines, self._arm)
        self.silences = Silences()
        self.late_renewals = LateRenewals()
        self.step = partial(Step, self.silences, self.late_renewals, self.rows.elections)
        self._deaths: dict[ObjectName, Death] = {}  # the last of each name
        self._deleted_kinds = DeletedKinds()

    def row(self, tracked: Tracked, changed_at: datetime, *, listing: int = 0) -> Row:
        key, version = tracked.key, version_after(tracked.resource_version, 0)
        return Row(
            key=key, tracked=tracked, version=version, changed_at=changed_at, listing=listing
        )

    def enter(self, rows: list[Row], at: datetime, step: Step) -> None:
        self.rows.add(*rows)
        for row in rows:
            try:
                self._arm(row)
            except Exception as error:
                self.skipping.skip_row(row, error, at, step)

    def understand(self, row: Row, now: datetime, step: Step) -> Row | None:
        """Before a later write: restore the last state that was understood, if any."""
        found = self.skipping.understand(row, step)
        if found is not None:
            self.rows.put(found, self.overrides.judge(found.tracked, now))
        return found

    def renew_as(self, row: Row, event: Applied, now: datetime, inferred: bool) -> bool:
        """Apply a whole Lease if it only renews, and remember its fingerprint."""
        lease = event.lease
        version, claimed = number_of(lease.metadata.resource_version), lease.spec.renew_time
        if claimed is None or not version or not row.outlook.plain:
            return False
        if not only_renewed(row.tracked.lasting.lease, lease):
            return False
        by_hand = is_renewed_by_hand(managers_of_event(event.line))
        if by_hand or not self.renew(row, version, claimed, now, inferred):
            return False
        self.rows.set_fingerprint(row, event.fingerprint)
        row.remembered = False
        return True

    def renew(
        self, row: Row, version: int, claimed: datetime, now: datetime, inferred: bool
    ) -> bool:
        """Apply a renewal that changes only renewTime. False: it may change more than that.

        `inferred`: the checkpoint may lack the renewal before it.
        """
        ahead, known = row.outlook, row.tracked
        previous, behind = known.renew_time, self.blind_times.behind
        if not ahead.plain or version <= row.version or previous is None or claimed <= previous:
            return False
        at = now
        if behind is not None:
            since = max(behind, row.changed_at, known.observed_at)
            at = believed(claimed, known.skew_seconds, since, now)
        if at - known.observed_at >= ahead.lasts:
            return False
        interval = claimed - previous
        row.tracked = renewed(
            known,
            claimed,
            at,
            interval=interval,
            version=version,
            live=behind is None,
            measured=not inferred and known.observed_at >= self.blind_times.watched_since,
        )
        row.version = version
        if interval < ahead.steady or at < known.observed_at:
            self._arm(row)
        return True

    def write(
        self,
        row: Row | None,
        lease: Lease,
        at: datetime,
        *,
        inferred: bool,
        step: Step,
        unseen_since: datetime | None = None,
    ) -> Row:
        """Apply a Lease of a watch event. `unseen_since`: a write since then was skipped."""
        sight = partial(self.blind_times.event, at, inferred=inferred, unseen_since=unseen_since)
        if row is not None and row.tracked.lasting.lease.uid == lease.uid:
            seen = step.as_managers_say(sight(row.newest), row.tracked, lease)
            self.advance(row, lease, seen, step, each=unseen_since is None)
            return row
        if row is not None:
            unseen = Observation(now=at, since=min(at, row.newest), inferred=True)
            self.vanish_unseen(row, lease, unseen, step)
        row = self.appear(lease, sight(None), step)
        self.enter([row], at, step)
        return row

    def appear(
        self,
        lease: Lease,
        seen: Observation,
        step: Step,
        *,
        listing: int = 0,
    ) -> Row:
        """Make the row of a Lease that is new. The caller adds it with `enter`."""
        death = self._deaths.get(lease.key)
        verdict = self.overrides.get(lease.key)
        earlier = self._deleted_kinds.take(lease.key)
        tracked, change = first_sight(
            self.cluster, lease, seen, verdict=verdict, earlier=earlier,
            died_at=death.at if death else None, gap_since=death.lost_at if death else None,
        )  # fmt: skip
        step.note((change,), None, tracked.lease)
        row = self.row(self.overrides.marked(tracked), change.at, listing=listing)
        self._deaths.pop(row.key, None)
        step.redraw[row.key] = None
        step.removed.pop(row.key, None)
        return row

    def advance(
        self, row: Row, lease: Lease, seen: Observation, step: Step, *, each: bool = False
    ) -> None:
        """Apply a later observation. `each`: every write since the last one was observed."""
        # The checkpoint lacks renewals; not those of a late Lease, which are stored at once.
        knows_last = not row.remembered or row.tracked.phase is Phase.LATE
        if not seen.inferred or (each and knows_last):
            at, sure = written_at(row.tracked, lease, seen)
            if sure:
                self.turn(row, seen.now, by=at, step=step)
        known, row.remembered = row.tracked.whole(), False
        tracked, changes = next_sight(self.cluster, known, lease, seen)
        self.rows.put(row, tracked)
        self._arm(row)
        step.note_late(known, tracked, seen)
        if changes:
            step.note(changes, known, tracked.lasting.lease)
            row.changed_at = max(change.at for change in changes)
        fresher = renewal_moved(known.lease, lease) and not changes
        fresher = fresher and known.lasting.renewed_at is None  # else the page tells of an edit
        if fresher and (tracked.phase, tracked.kind) == (known.phase, known.kind):
            step.renewed.append(row.key)
        else:
            step.redraw[row.key] = None
        if seen.live and tracked.observed_at < seen.now:  # its holder came without a renewal
            self.turn(row, seen.now, by=seen.now, step=step)

    def relist(self, row: Row, lease: Lease, at: datetime, step: Step) -> None:
        """Apply a later write of a known uid that a list shows."""
        seen = self.blind_times.listing(at, row.newest, remembered=row.remembered)
        self._turn_observed(row, at, step)
        tracked = listed_renewed(row.tracked, lease, seen) if row.outlook.plain else None
        if tracked is None:
            self.advance(row, lease, seen, step)
        else:
            row.tracked, row.remembered = tracked, False
            step.renewed.append(row.key)

    def set_overrides(self, kinds: Kinds, marks: Marks, now: datetime, step: Step) -> None:
        """Apply what admins say, and the rules to all other Leases."""
        for key in self.overrides.change_to(kinds, marks):
            row = self.rows.get(key)
            if row is None or row.tracked.lasting.not_understood is not None:
                continue
            try:
                judged = self.overrides.judge(row.tracked, now)
                self.rows.put(row, self.judge_abandoned(judged, now))
                self._arm(row)
                step.redraw[key] = None
            except Exception as error:
                self.skipping.skip_row(row, error, now, step)

    def vanish(self, row: Row, last: Lease, seen: Observation, at: datetime, step: Step) -> None:
        """Remove a deleted Lease; `last` is its last content."""
        self._forget(row, last, seen, at, step)
        self.rows.remove(row)

    def vanish_late(self, row: Row, last: Lease, seen: Observation, step: Step) -> None:
        """Do the same if the event reports the past: date it by the last sign of the Lease."""
        since = last_sign(row.tracked, last, seen)
        self.vanish(row, last, _replace(seen, since=since), since or seen.now, step)

    def vanish_all(self, rows: list[Row], at: datetime, step: Step) -> None:
        """Remove the Leases that are missing from a list."""
        for row in rows:
            count = len(step.clues)
            try:
                gone_at = max(at, row.newest)
                seen = self.blind_times.listing(gone_at, row.newest)
                self._forget(row, row.tracked.lease, seen, gone_at, step)
            except Exception as error:
                del step.clues[count:]
                self.skipping.lose(row, error, step)
        self.rows.remove(*rows)

    def vanish_unseen(self, row: Row, successor: Lease, seen: Observation, step: Step) -> None:
        """Another uid has this name now: the Lease was deleted before that one was created."""
        born, since = successor.metadata.creation_timestamp, seen.since
        # A creationTimestamp has whole seconds: it may lie before the last renewal.
        at = min(max(born, since), seen.now) if born and since else seen.now
        self.vanish(row, row.tracked.lease, seen, at, step)

    def turn_due(
        self, now: datetime, *, by: datetime, step: Step, alive: datetime | None = None
    ) -> bool:
        """Change the phases that are due at `by`, up to MAX_LOOKED_AT units of work.

        Returns whether a Lease ran out after `alive`, until when the cluster was surely alive:
        that is judged another time.
        """
        # An alarm within a span that has begun fires exactly: only a real deadline is worth that.
        work, unsure, soon = 0, [], plus(by, SPAN)
        for row in self.deadlines.due(by):
            turn_delay = row.outlook.turn_delay
            known, count = row.tracked, len(step.clues)
            try:
                if (
                    turn_delay is not None
                    and (soonest := plus(known.observed_at, turn_delay)) > soon
                ):
                    self.deadlines.arm(row, soonest)
                    work += 1
                elif alive is not None and ran_out_between(known, alive, by):
                    unsure.append(row)
                    work += 1
                else:
                    work += A_TURN if self.turn(row, now, by=by, step=step) else 1
            except Exception as error:
                del step.clues[count:]
                self.skipping.roll_back(row.key, row, known)
                self.skipping.skip_row(row, error, now, step)
                work += A_TURN
            if work >= MAX_LOOKED_AT:
                break
        for row in unsure:
            self.deadlines.arm(row, row.tracked.runs_out_at)
        return bool(unsure)

    def clock_jumped(self, jump: Jump) -> None:
        """Move every stored time, so that each Lease has as much time left as before."""
        by = jump.by
        self.blind_times.clock_jumped(jump)
        self.silences.clock_jumped(jump)
        self.late_renewals.clock_jumped(jump)
        self._deaths = {
            key: Death(moved(one.at, by), moved(one.lost_at, by))
            for key, one in self._deaths.items()
        }
        self.skipping.nameless_at = moved(self.skipping.nameless_at, by)
        self.deadlines.clear()
        for row in self.rows:
            self.deadlines.arm(row, reanchor(row, by) or self._abandonment(row.tracked))

    def turn(self, row: Row, now: datetime, *, by: datetime, step: Step) -> bool:
        """Change what is due by time alone, and set the alarm. Returns whether it changed."""
        known = row.tracked
        turn = next_turn(known)
        due = turn or self._abandonment(known)
        if due is None or due > by:
            row.outlook = outlook(known, turn)
            self.deadlines.arm(row, due)
            return False
        if turn is None:
            tracked, change = known.replace(abandoned=True), None
        else:
            unseen_since = self.blind_times.unseen_since(known, now, remembered=row.remembered)
            tracked, change = turned(self.cluster, known, now, by=by, unseen_since=unseen_since)
        self.rows.put(row, tracked)
        step.redraw[row.key] = None
        if change is not None:
            step.note((change,), known)
            row.changed_at = change.at
        self._arm(row)
        return True

    def hold_again(self, row: Row, step: Step) -> None:
        """Take back that it is late."""
        known = row.tracked
        self.rows.put(row, known.replace(phase=Phase.HELD, phase_since=known.observed_at))
        step.redraw[row.key] = None
        self._arm(row)

    def _turn_observed(self, row: Row, now: datetime, step: Step) -> None:
        """Change what was due before we lost sight: many that are due at once are judged late."""
        until = self.blind_times.known_until
        if row.remembered or until is None or row.armed is None:
            return
        by = min(until, now)
        if row.armed <= by:
            self.turn(row, now, by=by, step=step)

    def _arm(self, row: Row) -> None:
        """Set the alarm for the earliest possible change by time alone."""
        known = row.tracked
        turn = next_turn(known)
        row.outlook = outlook(known, turn)
        turn_delay = row.outlook.turn_delay
        at = turn if turn_delay is None else plus(known.observed_at, turn_delay)
        self.deadlines.arm(row, at or self._abandonment(known))

    def _forget(self, row: Row, last: Lease, seen: Observation, at: datetime, step: Step) -> None:
        known = row.tracked
        step.note((vanished(self.cluster, known, last, seen=seen, at=at),), known)
        step.removed[row.key] = None
        step.redraw.pop(row.key, None)
        self.deadlines.disarm(row)
        self.skipping.puzzling.pop(row.key, None)
        # If it was deleted at some time after its last sign, the gap is at most so long.
        lost_at = known.gap_since or (at if not seen.inferred or at == seen.since else None)
        self._deaths[row.key] = Death(at, None if known.holder is None else lost_at)
        if len(self._deaths) > REMEMBERED_DEATHS:
            del self._deaths[next(iter(self._deaths))]
        self._deleted_kinds.note(known)


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
            self._ledger.vanish_all(gone, self._since, step)
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
