"""Choose the stretch and the steps of a strip, such as that of the timeline's brush."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from dashboard.charts.time_scale import Scale
from dashboard.parts.query.time_range import SHORTEST, TimeRange

# Possible lengths with their number of steps, which last from 10 s to 3 d.
_SPANS = {
    timedelta(minutes=10): 60,
    timedelta(hours=1): 60,
    timedelta(hours=6): 72,
    timedelta(days=1): 96,
    timedelta(days=7): 84,
    timedelta(days=30): 90,
    timedelta(days=90): 90,
    timedelta(days=366): 122,
}
_MAX_STEPS = 150
_STEPS = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 10, 60, 600, 3600, 7200, 28800, 86400, 3 * 86400, 14 * 86400, 365 * 86400)
)
_ROOM = 3.5  # the least length, in lengths of what is shown, so that the brush can move
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OverviewStrip(msgspec.Struct, frozen=True):
    """`steps` steps from `since` on."""

    since: datetime
    step: timedelta
    steps: int

    @property
    def scale(self) -> Scale:
        return Scale(self.since, self.since + self.steps * self.step)


def overview_of(
    shown: TimeRange, now: datetime, *, watched: datetime | None = None
) -> OverviewStrip:
    """The shortest length that leaves room beside what is shown.

    It ends now, unless the shown stretch is older than that. It begins at a whole step, so the
    counts of past steps stay the same while time goes on; but not before `watched`, the first
    watched moment, unless the shown stretch does.
    """
    longest = max(_SPANS)
    span = next((span for span in _SPANS if span >= _ROOM * shown.length), longest)
    step = span / _SPANS[span]
    recent = shown.since >= now - span
    end = _next_step(now if recent else min(now, shown.until + (span - shown.length) / 2), step)
    since = end - span
    if watched is not None and shown.since >= watched - SHORTEST:
        since = max(since, _EPOCH + (watched - _EPOCH) // step * step)
    return OverviewStrip(since, step, (end - since) // step)


def _next_step(moment: datetime, step: timedelta) -> datetime:
    """The first whole step not before a moment."""
    return _EPOCH + -((_EPOCH - moment) // step) * step


def strip_of(since: datetime, until: datetime) -> OverviewStrip:
    """Cover a stretch with at most _MAX_STEPS steps, so that each can be seen."""
    step = next((step for step in _STEPS if (until - since) / step <= _MAX_STEPS), _STEPS[-1])
    first = (since - _EPOCH) // step
    steps = min(_MAX_STEPS, -((_EPOCH - until) // step) - first)
    return OverviewStrip(_EPOCH + first * step, step, max(1, steps))
