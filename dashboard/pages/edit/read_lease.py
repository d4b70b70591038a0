"""A Lease just read from the cluster, before the watch has reported its present term."""

from __future__ import annotations

from datetime import datetime

from leases.domain.cadence import EMPTY
from leases.domain.lease import Lease
from leases.domain.phase import phase_of
from leases.tracking.tracked_lease import Tracked


def as_read(tracked: Tracked, current: Lease, now: datetime) -> Tracked:
    observed_at = min(now, current.spec.renew_time or now)
    read = tracked.replace(
        lease=current,
        observed_at=observed_at,
        estimated=True,
        renewals_seen=0,
        intervals=EMPTY,
        phase_since=observed_at,
    )
    held_since = None if read.holder is None else current.spec.acquire_time
    return read.replace(phase=phase_of(read, now), held_since=held_since)
