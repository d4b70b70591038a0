"""The ticks of a time axis: at round moments of UTC, never too close."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from dashboard.charts.time_scale import Scale, percent

_EPOCH = datetime(1970, 1, 5, tzinfo=UTC)  # a Monday, because weeks begin on Mondays
_STEPS = tuple(
    timedelta(seconds=seconds)
    for seconds in (
        1, 2, 5, 10, 15, 30,
        60, 120, 300, 600, 900, 1800,
        3600, 7200, 10800, 14400, 21600, 43200,
        86400, 2 * 86400, 7 * 86400, 14 * 86400, 28 * 86400,
    )
)  # fmt: skip
_LAST_LABEL = 93.0  # percent; a label further right would be cut off off
_DAY = timedelta(days=1)


class Tick(msgspec.Struct, frozen=True):
    """`label` is "" where there is no room; `strong` marks the beginning of a day."""

    x: float
    label: str
    strong: bool


def ticks(scale: Scale, *, most: int = 8) -> tuple[Tick, ...]:
    """At most `most` ticks, at the finest step that allows it."""
    step = next((step for step in _STEPS if scale.length / step <= most), scale.length)
    number = -((_EPOCH - scale.since) // step)  # the first at or after the beginning
    found = []
    while (moment := _EPOCH + number * step) < scale.until:
        x = scale.x(moment)
        midnight = moment == moment.replace(hour=0, minute=0, second=0, microsecond=0)
        label = _label(moment, step, midnight=midnight) if x <= _LAST_LABEL else ""
        found.append(Tick(percent(x), label, midnight and step < _DAY))
        number += 1
    return tuple(found)


def _label(moment: datetime, step: timedelta, *, midnight: bool) -> str:
    if midnight:
        return f"{moment.day} {moment:%b}"
    return f"{moment:%H:%M:%S}" if step < timedelta(minutes=1) else f"{moment:%H:%M}"
