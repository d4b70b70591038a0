"""Shorten a holder's name to fit into a bar: the tail stays, which tells two pods apart."""

from __future__ import annotations

LANE_WIDTH = 860.0  # pixels of a lane on a wide screen; a narrower one cuts the label
LETTER = 6.65  # pixels, of 11 px monospace
_PADDING = 15.0
_FEWEST = 3  # letters that are still of use


def fit(host: str, tail: str, share: float, *, lane_width: float = LANE_WIDTH) -> str:
    """The name in a bar that has `share` percent of the lane; "" if too little fits."""
    letters = int((share / 100 * lane_width - _PADDING) / LETTER)
    if len(host) + len(tail) <= letters:
        return host + tail
    if letters >= len(tail) + 1 + _FEWEST:
        return f"{host[: letters - len(tail) - 1]}…{tail}"
    if not tail and letters > _FEWEST:
        return f"{host[: letters - 1]}…"
    return ""
