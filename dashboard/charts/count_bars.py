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
    return tuple(
        _bar(number, count, slot, unit, height, since + number * step, step)
        for number, count in enumerate(counts)
    )


def _bar(
    number: int,
    count: int | None,
    slot: float,
    unit: float,
    height: float,
    since: datetime,
    step: timedelta,
) -> CountBar:
    tall = round(max(_MIN_HEIGHT, count * unit), 1) if count else _EMPTY
    tall = height if count is None else tall
    x = slot * (number + (1 - _SHARE) / 2)
    return CountBar(
        percent(x), percent(slot * _SHARE), height - tall, tall, count, since, since + step
    )
