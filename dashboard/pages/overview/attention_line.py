"""One line of the Attention list."""

from __future__ import annotations

import msgspec

from dashboard.parts.change_sentence import Part

MANY = 4  # from so many elections with the same trouble on, they share one line


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """`amount` counts up from `since`, the sentence's end counts down to `until` (epoch s)."""

    rank: float
    phase: str
    icon: str
    namespace: str
    label: str
    url: str
    word: str
    why: tuple[Part, ...]
    amount: str
    moment: str
    since: float | None = None
    until: float | None = None
    until_text: str = ""
