"""The state of the watch of one cluster, which every page shows."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class ConnectionState(StrEnum):
    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    REFUSED = "refused"


class Connection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The state of one cluster's watch; `since` is when that state began."""

    state: ConnectionState
    since: datetime
    detail: str = ""  # what to do, in one sentence, when not live
    heard_at: datetime | None = None  # when the last byte from the cluster came
    behind_seconds: float | None = None  # delay of the last renewals

    def as_of(self, now: datetime) -> datetime:
        """Return the time of our data: now while live, else when we last heard from the cluster."""
        if self.state is ConnectionState.LIVE or self.heard_at is None:
            return now
        return min(now, self.heard_at)
