"""The lost share of some days in bars, small enough for a table row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

WIDTH, HEIGHT = 76.0, 18.0
FLOOR = 17.0
_SHARE = 0.7  # of a day's place that its bar fills
_FULL = 2.0  # times the allowed share: a bar of that fills the height
_LEAST = 2.0  # height of a bar that is not empty
_EMPTY = 1.0


class DayBars(msgspec.Struct, frozen=True):
    """SVG paths: days without loss, within the objective, beyond it, and without data."""

    zero: str
    some: str
    hot: str
    blind: str


def day_bars(shares: Sequence[float | None], allowed: float) -> DayBars:
    """Draw lost shares, oldest day first; None is a day without data."""
    paths: dict[str, list[str]] = {"zero": [], "some": [], "hot": [], "blind": []}
    step = WIDTH / max(1, len(shares))
    for place, share in enumerate(shares):
        x = place * step
        if share is None:
            paths["blind"].append(_bar(x, HEIGHT - 2, step))
        elif share <= 0:
            paths["zero"].append(_bar(x, _EMPTY, step * _SHARE))
        else:
            filled = min(1.0, share / (_FULL * allowed)) if allowed > 0 else 1.0
            height = max(_LEAST, filled * (HEIGHT - 2))
            paths["hot" if share > allowed else "some"].append(_bar(x, height, step * _SHARE))
    return DayBars(**{name: "".join(bars) for name, bars in paths.items()})


def _bar(x: float, height: float, width: float) -> str:
    return f"M{x:.1f} {FLOOR:g}v-{round(height, 1):g}h{width:.1f}v{round(height, 1):g}z"
