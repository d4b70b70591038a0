"""Map a stretch of time to percent of a chart's width."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

WHOLE = 100.0


class Scale(msgspec.Struct, frozen=True):
    """`since` is at 0 %, `until`, which must be later, at 100 %."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        return self.until - self.since

    def x(self, moment: datetime) -> float:
        """The position in percent; moments outside are at the edge."""
        return min(WHOLE, max(0.0, WHOLE * ((moment - self.since) / self.length)))

    def at(self, share: float) -> datetime:
        """The moment at a share of the width in percent."""
        return self.since + self.length * (share / WHOLE)


def percent(share: float) -> float:
    """Round to what a wide screen can show."""
    return round(share, 3)
