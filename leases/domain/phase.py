"""Where a Lease stands now."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Where a Lease stands. The value is the word in JSON, CSS, URLs and on the screen."""

    HELD = "held"
    LATE = "late"
    EXPIRED = "expired"
    VACANT = "vacant"
    UNTIMED = "untimed"
