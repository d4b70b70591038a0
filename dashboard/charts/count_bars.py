"""The bars of a strip, each for a stretch of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from dashboard.charts.time_scale import WHOLE, percent

HEIGHT = 30.0  # pixels of the highest bar
_MIN_HEIGHT = 3.0  # pixels of a bar that is not empty
_EMPTY = 1.5
_SHARE = 0.72  # of the slot's width


class CountBar(msgspec.Struct, frozen=True):
    """x and width in percent, y and height in pixels; `count` is None if not counted yet."""

    x: float
    width: float
    y: float
    height: float
    count: int | None
    since: datetime
    until: datetime


def bars(
    counts: Sequence[int | None], since: datetime, step: timedelta, *, height: float = HEIGHT
) -> tuple[CountBar, ...]:
    """Draw a bar for every count; the highest fills the strip, unless it is very low."""
    if not counts:
        return ()
    slot = WHOLE / len(counts)
    unit = height / max(4, *(count or 0 for count in counts))
    found = []
    for number, count in enumerate(counts):
        x, begin = slot * (number + (1 - _SHARE) / 2), since + number * step
        tall = round(max(_MIN_HEIGHT, count * unit), 1) if count else _EMPTY
        tall = height if count is None else tall
        width = percent(slot * _SHARE)
        found.append(CountBar(percent(x), width, height - tall, tall, count, begin, begin + step))
    return tuple(found)
