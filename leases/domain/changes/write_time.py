"""When something was written that we did not see as it happened: honest estimates inside a window.

Seen live, the moment of our seeing it is the moment. After a broken connection, a restart or a
relist all we have is what the holder claims, corrected by its known clock skew and never outside
the window in which it must have happened.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from leases.domain.bounded_time import after
from leases.domain.lease import Lease


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How we came to see a Lease."""

    now: datetime  # our clock
    since: datetime | None = None  # it was written after this and not seen as it happened
    inferred: bool = False  # from a list, or told again after a restart
    listed: bool = False  # a list shows what is, not what each write did
    remembered: bool = False  # what is known is an earlier run's, which wrote few renewals down

    @property
    def live(self) -> bool:
        return self.since is None and not self.inferred


class Claimant(Protocol):
    """What is known of the one whose times are to be believed."""

    @property
    def lease(self) -> Lease: ...
    @property
    def observed_at(self) -> datetime: ...
    @property
    def skew_seconds(self) -> float | None: ...


def renewal_moved(before: Lease, after: Lease) -> bool:
    """Whether a field moved that moves observed_at; what others write beside renews nothing."""
    old, new = before.spec, after.spec
    return (
        old.renew_time != new.renew_time
        or before.holder != after.holder
        or old.acquire_time != new.acquire_time
        or old.lease_duration_seconds != new.lease_duration_seconds
    )


def renewed_at(before: Claimant | None, after: Lease, seen: Observation) -> datetime:
    """observed_at after a renewal: now, or what renewTime claims, kept within the window."""
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
    """What a clock that is `skew` seconds behind ours claims, kept within the window."""
    if skew:
        claimed = after(claimed, skew)
    if since is not None and claimed < since:
        claimed = since
    return min(claimed, now)


def written_at(before: Claimant, after: Lease, seen: Observation) -> tuple[datetime, bool]:
    """When the write that made `after` of `before` was done, and whether that is more than a guess.

    acquireTime tells when a holder came. renewTime tells it of a single write; of a list it is only
    the last of many, but for a release, after which nobody renews.
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
    """When a Lease never seen before came to be as it is."""
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
