"""When a Lease that we watch counts as abandoned."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.past.abandoned import abandoned_from
from leases.domain.phase import Phase
from leases.tracking.tracked_lease import Tracked


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
        renewed_at=known.observed_at if lasting.named or known.renew_time else None,
        held_since=lasting.held_since,
        threshold=threshold,
    )


def judged_abandoned(known: Tracked, now: datetime, threshold: timedelta) -> Tracked:
    """Judge anew whether a Lease is abandoned at `now`."""
    judged = known.replace(abandoned=False) if known.lasting.abandoned else known
    since = abandonment(judged, threshold)
    return judged if since is None or since > now else judged.replace(abandoned=True)
