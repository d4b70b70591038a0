"""A day in 24 bars, small enough for a table row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT = 76, 18
STEP, BAR = 3.2, 2.2
FLOOR = 17
HOT = 3  # changes in one hour that are worth a look
FULL = 5  # changes in one hour that fill the height


class Sparkline(msgspec.Struct, frozen=True):
    """SVG paths of the bars: hours without changes, with some, and with many."""

    zero: str
    some: str
    hot: str
    total: int


def sparkline(numbers: Sequence[int]) -> Sparkline:
    """Draw numbers, oldest hour first."""
    paths: dict[str, list[str]] = {"zero": [], "some": [], "hot": []}
    for place, number in enumerate(numbers):
        name = "zero" if not number else "hot" if number >= HOT else "some"
        paths[name].append(_bar(place * STEP, number))
    zero, some, hot = ("".join(bars) for bars in paths.values())
    return Sparkline(zero, some, hot, sum(numbers))


def _bar(x: float, number: int) -> str:
    height = 1 if not number else round((HEIGHT - 2) * min(number, FULL) / FULL, 1)
    return f"M{x:.1f} {FLOOR}v-{height:g}h{BAR}v{height:g}z"
