"""What is unknown about an instant: nobody watched, or the Lease did not exist yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.past.as_of import PastPhase, PastState
from leases.domain.past.watched_times import UnwatchedTime
from leases.history.write.watched_spans import unwatched_times
from leases.tracking.tracked_lease import Tracked

AROUND = timedelta(minutes=1)  # read after an instant to find out whether anybody watched
NOT_YET = PastState(exists=False, phase=PastPhase.DELETED)
_WHY = {
    None: "Leaseboard did not know this cluster yet.",
    "": "Leaseboard was not running.",
    "stopped": "Leaseboard was stopped.",
    "lost": "The connection was lost.",
}


def blind_at(cluster: str, at: datetime, now: datetime) -> UnwatchedTime | None:
    """The unwatched time that contains the instant, or None."""
    around = unwatched_times(cluster, since=at, until=at + AROUND, now=now)
    return next((span for span in around if span.since <= at < span.until), None)


def why_blind(blind: UnwatchedTime | None) -> str:
    """A sentence that says why nobody watched; "" if somebody did."""
    return "" if blind is None else blind.detail or _WHY[blind.ended]


def created_after(tracked: Tracked | None, at: datetime) -> bool:
    created = tracked.lease.metadata.creation_timestamp if tracked else None
    return created is not None and created > at
