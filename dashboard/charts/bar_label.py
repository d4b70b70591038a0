"""A holder's name inside a bar: shortened from the bar's share of the lane, because an SVG knows no
ellipsis. The tail, which tells two pods apart, stays.
"""

from __future__ import annotations

LANE_WIDTH = 860.0  # pixels of a lane on a wide screen; on a narrower one the bar cuts its label
LETTER = 6.65  # pixels, of 11 px monospace
_PADDING = 15.0
_FEWEST = 3  # letters that still say something


def fit(host: str, tail: str, share: float, *, lane_width: float = LANE_WIDTH) -> str:
    """The name in a bar of so many percent of the lane, or "" where nothing of use fits."""
    letters = int((share / 100 * lane_width - _PADDING) / LETTER)
    if len(host) + len(tail) <= letters:
        return host + tail
    if letters >= len(tail) + 1 + _FEWEST:
        return f"{host[: letters - len(tail) - 1]}…{tail}"
    if not tail and letters > _FEWEST:
        return f"{host[: letters - 1]}…"
    return ""
