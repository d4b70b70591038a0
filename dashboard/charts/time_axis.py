"""A stretch of time as percent of a chart's width, its ticks, and bands of incidents."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

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


def percent(share: float) -> float:
    """Round to what a wide screen can show."""
    return round(share, 3)


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
_LAST_LABEL = 93.0  # percent; a label further right would be cut off
_DAY = timedelta(days=1)


class Tick(msgspec.Struct, frozen=True):
    """`label` is "" where there is no room; `strong` marks the beginning of a day. `of_day`: so do
    all marks of this axis.
    """

    x: float
    label: str
    strong: bool
    at: datetime
    of_day: bool = False


def ticks(scale: Scale, *, most: int = 8) -> tuple[Tick, ...]:
    """At most `most` ticks, at the finest step that allows it."""
    step = next((step for step in _STEPS if scale.length / step <= most), scale.length)
    number = -((_EPOCH - scale.since) // step)  # the first at or after the beginning
    found = []
    while (moment := _EPOCH + number * step) < scale.until:
        x = scale.x(moment)
        midnight = moment == moment.replace(hour=0, minute=0, second=0, microsecond=0)
        label = _label(moment, step, midnight=midnight) if x <= _LAST_LABEL else ""
        found.append(Tick(percent(x), label, midnight and step < _DAY, moment, step >= _DAY))
        number += 1
    return tuple(found)


def _label(moment: datetime, step: timedelta, *, midnight: bool) -> str:
    if midnight:
        return f"{moment.day} {moment:%b}"
    return f"{moment:%H:%M:%S}" if step < timedelta(minutes=1) else f"{moment:%H:%M}"


NARROW = 0.5  # percent; a narrower band could not be hit, and a nearer one not be told apart
T = TypeVar("T")


class Band(msgspec.Struct, Generic[T], frozen=True):
    """x and width in percent; `found` are what it stands for, `until` is their latest end."""

    x: float
    width: float
    since: datetime
    until: datetime
    found: tuple[T, ...]


def incident_bands(
    spans: Iterable[tuple[datetime, datetime, T]], scale: Scale
) -> tuple[Band[T], ...]:
    """Bands that overlap become one if their left edges do not show them apart."""
    bands: list[Band[T]] = []
    for since, until, what in sorted(spans, key=lambda span: span[:2]):
        if until < scale.since or since >= scale.until:
            continue
        x = scale.x(since)
        end = max(scale.x(until), x + NARROW)
        last = bands[-1] if bands else None
        if last is not None and x - last.x < NARROW:
            width = max(end, last.x + last.width) - last.x
            found = (*last.found, what)
            bands[-1] = Band(last.x, percent(width), last.since, max(until, last.until), found)
        else:
            x = min(percent(x), 100 - NARROW)
            width = min(percent(end - x), 100 - x)
            bands.append(Band(x, width, since, until, (what,)))
    return tuple(bands)
