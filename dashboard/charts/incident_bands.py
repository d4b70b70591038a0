"""Where incidents lie on a scale; those too close together become one band."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from dashboard.charts.time_scale import Scale, percent

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
