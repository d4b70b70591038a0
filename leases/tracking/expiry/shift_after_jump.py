"""Move our times after the wall clock was set, each by as much as the clock.

Ages, remaining times and gaps stay the same. What a Lease itself says (renewTime, acquireTime)
stays: it is by its writer's clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from leases.domain.cadence import EMPTY
from leases.domain.connection import Connection
from leases.domain.phase import next_turn
from leases.domain.steady_clock import moved
from leases.tracking.expiry.phase_turn import UNKNOWN
from leases.tracking.lease_index import Row
from leases.tracking.tracked_lease import NotUnderstood, Tracked

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
    lasting = _replace(
        known.lasting,
        phase_since=moved(known.phase_since, by),
        held_since=moved(known.held_since, by),
        gap_since=moved(known.gap_since, by),
        not_understood=_not_understood(known.lasting.not_understood, by),
    )
    return _replace(known, lasting=lasting, observed_at=moved(known.observed_at, by), lags=EMPTY)


def _not_understood(state: NotUnderstood | None, by: timedelta) -> NotUnderstood | None:
    if state is None:
        return None
    before = None if state.before is None else reanchored(state.before, by)
    return _replace(state, since=moved(state.since, by), at=moved(state.at, by), before=before)


def moved_connection(stood: Connection, by: timedelta) -> Connection:
    since, heard_at = moved(stood.since, by), moved(stood.heard_at, by)
    return _replace(stood, since=since, heard_at=heard_at, behind_seconds=None)
