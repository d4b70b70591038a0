"""When the phase of a Lease changes, and for which renewals that need not be computed again."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil, floor

import msgspec

from leases.domain.bounded_time import span
from leases.domain.kind import Kind
from leases.domain.phase import Phase, trusted_cadence
from leases.tracking.tracked_lease import Tracked

STEADY_SHARE = 0.75  # of the cadence; nearly all renewals are further apart
STEPS = 64  # rounding steps per second, so that many Leases share one value


class RenewalOutlook(msgspec.Struct, frozen=True, gc=False):
    """What may happen to a Lease while it is only renewed."""

    # The phase does not change sooner than this after any renewal, while intervals are not shorter
    # than `steady`.
    turn_delay: timedelta | None
    steady: timedelta
    plain: bool  # a renewal may change nothing but freshness
    lasts: timedelta  # it expires this long after a renewal


EVER = timedelta.max
UNKNOWN = RenewalOutlook(None, EVER, plain=False, lasts=EVER)


def outlook(known: Tracked, turn: datetime | None) -> RenewalOutlook:
    """Return for which renewals nobody needs to compute the next phase change.

    While no interval is below a share of the current cadence, neither is the cadence.
    """
    lasting, cadence = known.lasting, trusted_cadence(known)
    plain = (
        lasting.settled
        # The first renewal may show that it is no lock: see classify.
        and (known.renewals_seen > 0 or lasting.kind is not Kind.LOCK)
        and not lasting.rewritten
        and lasting.phase in (Phase.HELD, Phase.UNTIMED)
    )
    lasts = lasting.lease.spec.lease_duration_seconds
    if cadence is None:
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
