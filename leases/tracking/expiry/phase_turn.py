"""When the phase of a Lease turns, and what of that need not be asked anew at each renewal."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil, floor

import msgspec

from leases.domain.bounded_time import span
from leases.domain.kind import Kind
from leases.domain.phase import ENOUGH_RENEWALS, Phase, next_turn
from leases.tracking.tracked_lease import Tracked

STEADY_SHARE = 0.75  # of the cadence; nearly all renewals are further apart
STEPS = 64  # a second; many Leases share what is rounded to them


class RenewalOutlook(msgspec.Struct, frozen=True, gc=False):
    """What is to come for a Lease while it is only renewed."""

    turn_delay: timedelta | None  # the phase does not turn before so long after any renewal, while
    steady: timedelta  # its interval is at least so long
    plain: bool  # whether there may be no more to a renewal than freshness
    lasts: timedelta  # so long after a renewal it has run out


EVER = timedelta.max
UNKNOWN = RenewalOutlook(None, EVER, plain=False, lasts=EVER)


def turn_of(known: Tracked) -> datetime | None:
    """When the phase turns unless it is renewed; None when it stays."""
    return next_turn(
        known.lasting.lease,
        observed_at=known.observed_at,
        cadence_seconds=known.cadence_seconds,
        renewals_seen=known.renewals_seen,
        phase=known.phase,
    )


def outlook(known: Tracked, turn: datetime | None) -> RenewalOutlook:
    """For which renewals nobody need ask again when the phase turns.

    While no interval is below a share of the present cadence, neither is the cadence.
    """
    lasting, cadence = known.lasting, known.cadence_seconds
    plain = (
        lasting.settled
        # The first renewal of what looks like a lock may tell that it is none: see classify.
        and (known.renewals_seen > 0 or lasting.kind is not Kind.LOCK)
        and not lasting.rewritten
        and lasting.phase in (Phase.HELD, Phase.UNTIMED)
    )
    lasts = lasting.lease.spec.lease_duration_seconds
    if cadence is None or known.renewals_seen < ENOUGH_RENEWALS:
        return _shared(None, None, lasts, plain=plain)
    steady = ceil(STEADY_SHARE * cadence * STEPS)
    if turn is None:
        return _shared(None, steady, lasts, plain=plain)
    turn_delay = (turn - known.observed_at).total_seconds() * STEADY_SHARE
    return _shared(floor(turn_delay * STEPS), steady, lasts, plain=plain)


@lru_cache(4096)
def _shared(
    turn_delay: int | None, steady: int | None, lasts: int | None, *, plain: bool
) -> RenewalOutlook:
    return RenewalOutlook(
        None if turn_delay is None else span(turn_delay / STEPS),
        EVER if steady is None else span(steady / STEPS),
        plain,
        EVER if lasts is None else span(lasts),
    )
