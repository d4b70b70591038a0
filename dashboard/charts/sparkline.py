"""A day in 24 bars, small enough for a table row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dashboard.charts.changes_per_hour import UNWATCHED

WIDTH, HEIGHT = 76, 18
STEP, BAR = 3.2, 2.2
FLOOR = 17
HOT = 3  # changes in one hour that are worth a look
FULL = 5  # changes in one hour that fill the height


class Sparkline(msgspec.Struct, frozen=True):
    """SVG paths of the bars: hours without changes, with some, with many, and not watched."""

    zero: str
    some: str
    hot: str
    blind: str
    total: int
    unwatched: int  # hours that nobody watched and that have no change


def sparkline(numbers: Sequence[int], unwatched: Sequence[str] = ()) -> Sparkline:
    """Draw numbers, oldest hour first; `unwatched` as of `unwatched_hours`."""
    paths: dict[str, list[str]] = {"zero": [], "some": [], "hot": [], "blind": []}
    for place, number in enumerate(numbers):
        x = place * STEP
        if number:
            height = (HEIGHT - 2) * min(number, FULL) / FULL
            paths["hot" if number >= HOT else "some"].append(_bar(x, height))
        elif unwatched and unwatched[place] == UNWATCHED:
            paths["blind"].append(_bar(x, HEIGHT - 2, STEP))
        else:
            paths["zero"].append(_bar(x, 1))
    drawn = {name: "".join(bars) for name, bars in paths.items()}
    return Sparkline(**drawn, total=sum(numbers), unwatched=len(paths["blind"]))


def _bar(x: float, height: float, width: float = BAR) -> str:
    return f"M{x:.1f} {FLOOR}v-{round(height, 1):g}h{width}v{round(height, 1):g}z"
