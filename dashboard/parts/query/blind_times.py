"""What cannot be known of an instant: nobody watched then, or the Lease did not exist yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.past.as_of import PastPhase, PastState
from leases.domain.past.watched_times import UnwatchedTime
from leases.history.write.watched_spans import unwatched_times
from leases.tracking.tracked import Tracked

AROUND = timedelta(minutes=1)  # is looked at to tell whether anybody watched at an instant
NOT_YET = PastState(exists=False, phase=PastPhase.DELETED)
_WHY = {
    None: "Leaseboard did not know this cluster yet.",
    "": "Leaseboard was not running.",
    "stopped": "Leaseboard was stopped.",
    "lost": "The connection was lost.",
}


def blind_at(cluster: str, at: datetime, now: datetime) -> UnwatchedTime | None:
    """The time in which nobody watched, if the instant lies in one."""
    around = unwatched_times(cluster, since=at, until=at + AROUND, now=now)
    return next((span for span in around if span.since <= at < span.until), None)


def why_blind(blind: UnwatchedTime | None) -> str:
    """Why nobody was watching, in a sentence; "" where somebody was."""
    return "" if blind is None else blind.detail or _WHY[blind.ended]


def created_after(tracked: Tracked | None, at: datetime) -> bool:
    """Whether a Lease that is there now did not exist at that instant."""
    created = tracked.lease.metadata.creation_timestamp if tracked else None
    return created is not None and created > at
