"""How fresh our sight of a cluster is: data on every page, never only a log line."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class ConnectionState(StrEnum):
    """Where the watch of one cluster stands."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    REFUSED = "refused"


class Connection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The state of one cluster's watch; `since` is when it came to be in that state."""

    state: ConnectionState
    since: datetime
    detail: str = ""  # one sentence that says what to do, when not live
    heard_at: datetime | None = None  # last byte that proves the cluster is there
    behind_seconds: float | None = None  # how far the last event lagged behind its writing

    def as_of(self, now: datetime) -> datetime:
        """The moment of what we know: now while the watch is live, else when we last heard."""
        if self.state is ConnectionState.LIVE or self.heard_at is None:
            return now
        return min(now, self.heard_at)
