"""A stretch of time along a chart: x is a share of its width in percent, so that a chart is fluid
and needs no inline style.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

WHOLE = 100.0


class Scale(msgspec.Struct, frozen=True):
    """`since` is at 0 %, `until` at 100 %; it must be later."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        return self.until - self.since

    def x(self, moment: datetime) -> float:
        """Where it is, in percent; what lies outside is at the edge."""
        return min(WHOLE, max(0.0, WHOLE * ((moment - self.since) / self.length)))

    def at(self, share: float) -> datetime:
        """The moment at a share of the width in percent."""
        return self.since + self.length * (share / WHOLE)


def percent(share: float) -> float:
    """As exact as a wide screen can show."""
    return round(share, 3)
