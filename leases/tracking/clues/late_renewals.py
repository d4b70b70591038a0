"""Remember which renewals came late. A renewal in time costs nothing: it never gets here."""

from __future__ import annotations

from collections import deque
from datetime import datetime

from leases.domain.cause.clue import LateRenewal, OverdueInterval
from leases.domain.lease import ObjectName
from leases.domain.phase import DEADLINE_SHARE
from leases.tracking.tracked_lease import Tracked

MAX_LEASES = 10_000
KEPT = 12  # of one Lease
_NONE: deque[OverdueInterval] = deque()


class LateRenewals:
    """The last overdue renewals of each Lease that had any lately."""

    def __init__(self) -> None:
        self._rings: dict[ObjectName, deque[OverdueInterval]] = {}

    def of(self, key: ObjectName) -> tuple[OverdueInterval, ...]:
        """Return the last overdue renewals of one Lease, oldest first."""
        return tuple(self._rings.get(key, _NONE))

    def note(self, known: Tracked, at: datetime) -> LateRenewal | None:
        """Add a renewal of the late state `known`. Returns it if it nearly came too late."""
        seconds = (at - known.observed_at).total_seconds()
        ring = self._rings.pop(known.key, None)
        if ring is None:
            ring = deque(maxlen=KEPT)
            if len(self._rings) >= MAX_LEASES:
                del self._rings[next(iter(self._rings))]
        ring.append(OverdueInterval(at, seconds))
        self._rings[known.key] = ring
        duration, holder = known.lasts_seconds, known.holder
        if duration is None or holder is None or seconds < DEADLINE_SHARE * duration:
            return None
        return LateRenewal(known.key, at, seconds, duration, holder)
