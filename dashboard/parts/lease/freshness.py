"""How much of a Lease's time is left: the bar, the ring, and what the browser counts from."""

from __future__ import annotations

from datetime import datetime

import msgspec

from dashboard.parts.formatting import age, rough
from leases.domain.phase import Phase, late_after
from leases.tracking.tracked_lease import Tracked

FINE = 99.95  # seconds; a longer time with tenths does not fit into the ring
RING = 188.5  # circumference of the ring, r = 30


class Freshness(msgspec.Struct, frozen=True):
    """`observed` is epoch seconds, `duration` and `late_after` are seconds; `left` and `tick`
    (where late begins) are percent. `duration` is None for a Lease that cannot run out.
    """

    observed: float
    duration: float | None
    late_after: float | None
    age: str
    left: float
    tick: float | None
    ring_offset: float
    countdown: str
    countdown_word: str


def numbers(tracked: Tracked) -> list[float | None]:
    """For a live frame: the last renewal (epoch s), the duration and when it is late (seconds)."""
    return [tracked.observed_at.timestamp(), tracked.lasts_seconds, late_after(tracked)]


def freshness(tracked: Tracked, now: datetime) -> Freshness | None:
    """None for a Lease that nobody holds."""
    if tracked.phase is Phase.VACANT:
        return None
    observed, duration, late = numbers(tracked)
    elapsed = max(0.0, (now - tracked.observed_at).total_seconds())
    left = max(0.0, 1 - elapsed / duration) if duration else 0.0
    tick = 100 * (1 - late / duration) if duration and late and late < duration else None
    overdue = elapsed - (duration or 0)
    return Freshness(
        observed=observed or 0.0,
        duration=duration,
        late_after=late,
        age=age(elapsed),
        left=round(left * 100, 1),
        tick=round(tick, 1) if tick is not None else None,
        ring_offset=round(RING * (1 - left), 1),
        countdown=f"{-overdue:.1f}" if -FINE < overdue < 0 else rough(abs(overdue)),
        countdown_word="overdue" if overdue >= 0 else "s left" if overdue > -FINE else "left",
    )
