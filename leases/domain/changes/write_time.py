"""Estimate when a write happened that we did not observe live.

Observed live, it happened when we observed it. After a broken connection, a restart or a list we
have only the holder's claim. We correct it by the holder's known clock skew and keep it within the
time window in which the write must have happened.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from leases.domain.bounded_time import after
from leases.domain.lease import Lease
from leases.domain.phase import KnownLease


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    now: datetime  # our clock
    since: datetime | None = None  # not live: it was written after this
    inferred: bool = False  # from a list, or replayed after a restart
    listed: bool = False  # from a list, which shows the state but not each write
    remembered: bool = False  # the known state is from the checkpoint, which lacks most renewals

    @property
    def live(self) -> bool:
        return self.since is None and not self.inferred


def renewal_moved(before: Lease, after: Lease) -> bool:
    """Whether a field changed that counts as a renewal."""
    old, new = before.spec, after.spec
    return (
        old.renew_time != new.renew_time
        or before.holder != after.holder
        or old.acquire_time != new.acquire_time
        or old.lease_duration_seconds != new.lease_duration_seconds
    )


def renewed_at(before: KnownLease | None, after: Lease, seen: Observation) -> datetime:
    """Return observed_at after a renewal: now, or the corrected renewTime."""
    claimed = after.spec.renew_time
    if seen.live or claimed is None:
        return seen.now
    skew = None
    if before is not None and before.lease.holder == after.holder:
        skew = before.skew_seconds
    since = before.observed_at if before is not None and seen.remembered else seen.since
    return believed(claimed, skew, since, seen.now)


def believed(
    claimed: datetime, skew: float | None, since: datetime | None, now: datetime
) -> datetime:
    """Correct a claimed time by the skew, and keep it within the time window."""
    if skew:
        claimed = after(claimed, skew)
    if since is not None and claimed < since:
        claimed = since
    return min(claimed, now)


def written_at(before: KnownLease, after: Lease, seen: Observation) -> tuple[datetime, bool]:
    """Return when the write from `before` to `after` happened, and whether that is exact.

    acquireTime says when a holder came. renewTime gives the time of a single write. In a list it is
    only the last of several, except after a release, when nobody renews.
    """
    if seen.live:
        return seen.now, True
    acquired = after.spec.acquire_time
    acquired_anew = acquired != before.lease.spec.acquire_time
    if acquired is not None and acquired_anew and _inside(acquired, seen):
        return acquired, True
    if after.spec.renew_time != before.lease.spec.renew_time and after.spec.renew_time is not None:
        only_write = not seen.listed or after.holder is None
        if only_write or after.holder == before.lease.holder:
            return renewed_at(before, after, seen), only_write
    return seen.now, False


def appeared_at(lease: Lease, holder: str | None, seen: Observation) -> datetime:
    """Return when a new Lease came into its present state."""
    if seen.live:
        return seen.now
    created, acquired = lease.metadata.creation_timestamp, lease.spec.acquire_time
    after_birth = acquired is not None and (created is None or created <= acquired)
    if holder is not None and acquired is not None and after_birth and _inside(acquired, seen):
        return acquired
    if created is not None and seen.since is not None and _inside(created, seen):
        return created
    return seen.now


def _inside(claimed: datetime, seen: Observation) -> bool:
    return (seen.since is None or seen.since <= claimed) and claimed <= seen.now
