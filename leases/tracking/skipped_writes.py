"""Leases whose newest write could not be followed: shown as such until a later write can be.

All of this runs after an exception. Of a failed write we keep only its resourceVersion, so that
only a list tries it again.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from leases.domain.kind import Kind
from leases.domain.lease import ObjectName, number_of
from leases.domain.phase import Phase
from leases.tracking.deadlines import UNKNOWN, Deadlines
from leases.tracking.lease_index import LeaseIndex, Row
from leases.tracking.store_step import Step
from leases.tracking.tracked_lease import Lasting, NotUnderstood, Skipped, Tracked, Update
from leases.wire.watch_decoding import Applied, Deleted, Renewed, Unreadable, WatchEvent

logger = logging.getLogger(__name__)

MAX_LOGGED = 20  # per minute; the rest are counted
MINUTE = timedelta(minutes=1)


def puzzling(known: Tracked | None, seen: Unreadable, at: datetime) -> Tracked:
    """Return the state of a Lease that is not understood: its last good state, untimed."""
    earlier = None if known is None else known.lasting.not_understood
    state = NotUnderstood(
        since=at if earlier is None else earlier.since,
        at=at,
        reason=seen.reason,
        before=known if earlier is None else earlier.before,
    )
    base = known
    if base is None:
        lease = seen.bare_lease()
        reason = "Nothing of it could be understood yet."
        lasting = Lasting(
            key=lease.key,
            lease=lease,
            kind=Kind.UNKNOWN,
            kind_reason=reason,
            phase=Phase.UNTIMED,
            phase_since=at,
        )
        base = Tracked(lasting, None, at, estimated=True)
    # Untimed, so that it cannot expire: we do not know whether it was renewed.
    return base.replace(phase=Phase.UNTIMED, phase_since=state.since, not_understood=state)


def failed_on(event: WatchEvent, error: Exception, row: Tracked | None) -> Unreadable:
    """Describe an event that we could not follow; `row` is the known state of its Lease."""
    reason = _failed(error)
    if isinstance(event, Applied | Deleted):
        meta = event.lease.metadata
        return Unreadable(event.lease.key, reason, meta.uid, meta.resource_version)
    key = None if row is None else row.key
    version = event.resource_version if isinstance(event, Renewed) else ""
    return Unreadable(key, reason, resource_version=version)


class Skipping:
    """The Leases of one cluster that are not understood."""

    def __init__(
        self, rows: LeaseIndex, deadlines: Deadlines[Row], arm: Callable[[Row], object]
    ) -> None:
        self._rows = rows
        self._deadlines = deadlines
        self._arm = arm
        self.puzzling: dict[ObjectName, Row] = {}
        self.nameless_at: datetime | None = None  # when the last write without a readable name came

    def skip(
        self, seen: Unreadable, at: datetime, step: Step, *, error: Exception | None = None
    ) -> Row | None:
        """Show a Lease as not understood. Returns its row, if its name is known."""
        key = seen.key
        row = None if key is None else self._rows.get(key)
        known = None if row is None else row.tracked
        earlier = None if known is None else known.lasting.not_understood
        again = earlier is not None and earlier.reason == seen.reason
        step.skipped.append(Skipped(key, seen.reason, error, again))
        if key is None:
            self.nameless_at = at
            return None
        tracked, version = puzzling(known, seen, at), number_of(seen.resource_version)
        if row is None:
            row = Row(key=key, tracked=tracked, version=version, changed_at=at)
            self._rows.add(row)
        else:
            self._rows.put(row, tracked)
            self._rows.set_fingerprint(row, 0)
            row.version = max(row.version, version)
        row.outlook = UNKNOWN
        self._deadlines.disarm(row)
        self.puzzling[key] = row
        step.redraw[key] = None
        step.removed.pop(key, None)
        return row

    def skip_row(self, row: Row, error: Exception, at: datetime, step: Step) -> None:
        """Do the same when a deadline or an override failed, and not a write."""
        self.skip(Unreadable(row.key, _failed(error)), at, step, error=error)

    def lose(self, row: Row, error: Exception, step: Step) -> None:
        """Remove a deleted Lease whose `deleted` could not be made."""
        step.skipped.append(Skipped(row.key, _failed(error), error))
        step.removed[row.key] = None
        step.redraw.pop(row.key, None)
        self._deadlines.disarm(row)
        self.puzzling.pop(row.key, None)

    def understand(self, row: Row, step: Step) -> Row | None:
        """Restore the last state that was understood; None: there is none."""
        state = row.tracked.lasting.not_understood
        self.puzzling.pop(row.key, None)
        step.redraw[row.key] = None
        if state is None or state.before is None:
            self._rows.remove(row)
            return None
        self._rows.put(row, state.before)
        self._arm(row)
        return row

    def roll_back(self, key: ObjectName, row: Row | None, known: Tracked | None) -> None:
        """Undo a write that failed halfway: restore the row as it was."""
        there = self._rows.get(key)
        if there is not None and there is not row:
            self._rows.remove(there)
            self._deadlines.disarm(there)
        if row is None or known is None:
            return
        if there is row:
            self._rows.put(row, known)
        else:
            row.tracked = known
            self._rows.add(row)


def _failed(error: Exception) -> str:
    return f"Leaseboard failed on it ({type(error).__name__})."


class SkippedLog:
    """Logs each write that could not be followed, at most MAX_LOGGED a minute."""

    def __init__(self) -> None:
        self._minute: datetime | None = None
        self._logged = self._left_out = 0

    def note(self, update: Update) -> None:
        if self._minute is None or not self._minute <= update.now < self._minute + MINUTE:
            if self._left_out:
                logger.error(
                    "%s: %d more Leases were not understood", update.cluster, self._left_out
                )
            self._minute, self._logged, self._left_out = update.now, 0, 0
        for one in update.skipped:
            if one.again:
                continue
            if self._logged >= MAX_LOGGED:
                self._left_out += 1
                continue
            self._logged += 1
            logger.error(
                "%s: the Lease %s is not understood; the watch goes on. %s",
                update.cluster,
                one.key or "without a readable name",
                one.reason,
                exc_info=one.error,
            )
