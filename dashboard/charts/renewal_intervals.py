"""A bar chart of renewal intervals: x and width in percent, y and height in pixels."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from dashboard.charts.time_scale import Scale, percent
from dashboard.charts.time_ticks import Tick, ticks

TOP, BOTTOM = 10.0, 148.0  # where the highest and the lowest value are drawn
LEFT = 5.0  # percent, for the numbers of the axis
MAX_BARS = 120
_SURE = 1e-6  # rounding error, in bars, of an interval at a bar's edge
_ROOM = 1.12  # above the highest value
_FAR = 8.0  # longest intervals; a longer duration is left out, or it would flatten the bars
_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0)
_MAX_LINES = 4


class IntervalBar(msgspec.Struct, frozen=True, kw_only=True):
    """The longest interval that ended in a stretch; `phase` is what the Lease became in it."""

    x: float
    width: float
    y: float
    height: float
    seconds: float
    since: datetime
    until: datetime
    phase: str


class ScaleLine(msgspec.Struct, frozen=True):
    y: float
    seconds: float


class RenewalChart(msgspec.Struct, frozen=True, kw_only=True):
    """`unknown` is the width in percent of the unwatched time at the beginning."""

    bars: tuple[IntervalBar, ...]
    lines: tuple[ScaleLine, ...]
    ticks: tuple[Tick, ...]
    limit: ScaleLine | None
    usual: ScaleLine | None
    longest: IntervalBar | None
    unknown: float


def renewal_chart(
    intervals: Iterable[tuple[datetime, float]],
    scale: Scale,
    *,
    known_since: datetime,
    duration: float | None,
    usual: float | None,
    late_after: float | None,
    bars: int = MAX_BARS,
) -> RenewalChart:
    """Draw (end, seconds) intervals inside the scale; levels are in seconds."""
    found = _merged(intervals, scale, bars)
    longest = max((seconds for _, seconds in found), default=0.0)
    highest = max(longest, usual or 0.0, 0.1)
    near = duration is not None and duration <= _FAR * highest
    if near and duration is not None:
        highest = max(highest, duration)
    unit = (BOTTOM - TOP) / (highest * _ROOM)
    step = scale.length / bars
    drawn = tuple(
        _bar(slot, seconds, scale, unit, step, _phase(seconds, duration, late_after))
        for slot, seconds in found
    )
    return RenewalChart(
        bars=drawn,
        lines=tuple(_line(level, unit) for level in _levels(highest)),
        ticks=tuple(msgspec.structs.replace(t, x=_place(t.x)) for t in ticks(scale)),
        limit=_line(duration, unit) if near and duration is not None else None,
        usual=None if usual is None else _line(usual, unit),
        longest=max(drawn, key=lambda bar: bar.seconds, default=None),
        unknown=percent(scale.x(known_since) * (100 - LEFT) / 100),
    )


def _merged(
    intervals: Iterable[tuple[datetime, float]], scale: Scale, bars: int
) -> list[tuple[int, float]]:
    """The longest interval of each bar, by the bar's number."""
    longest: dict[int, float] = {}
    for at, seconds in intervals:
        if scale.since <= at < scale.until:
            slot = int(scale.x(at) * bars / 100 + _SURE)
            longest[slot] = max(seconds, longest.get(slot, 0.0))
    return sorted(longest.items())


def _bar(
    slot: int, seconds: float, scale: Scale, unit: float, step: timedelta, phase: str
) -> IntervalBar:
    width = 100 * (step / scale.length)
    height = max(1.0, seconds * unit)
    return IntervalBar(
        x=_place(slot * width),
        width=percent(width * 0.78 * (100 - LEFT) / 100),
        y=round(BOTTOM - height, 1),
        height=round(height, 1),
        seconds=seconds,
        since=scale.since + slot * step,
        until=scale.since + (slot + 1) * step,
        phase=phase,
    )


def _place(x: float) -> float:
    """Convert a share of the scale to one of the chart, right of the axis."""
    return percent(LEFT + x * (100 - LEFT) / 100)


def _phase(seconds: float, duration: float | None, late_after: float | None) -> str:
    if duration is not None and seconds >= duration:
        return "expired"
    return "late" if late_after is not None and seconds > late_after else "held"


def _line(seconds: float, unit: float) -> ScaleLine:
    return ScaleLine(round(BOTTOM - seconds * unit, 1), seconds)


def _levels(highest: float) -> list[float]:
    """At most _MOST_LINES round levels from 0 to the highest."""
    step = next((step for step in _STEPS if highest / step <= _MAX_LINES), highest / _MAX_LINES)
    return [step * number for number in range(int(highest / step) + 1)]
