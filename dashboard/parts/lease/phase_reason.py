"""Why a Lease is in its phase, in words whose numbers the browser counts on."""

from __future__ import annotations

import msgspec

from dashboard.parts.formatting import age, seconds
from leases.domain.phase import Clause, Explanation


class WhyPart(msgspec.Struct, frozen=True):
    """Words around seconds after the last renewal, which count up from `passed` or to `left`."""

    before: str
    number: str = ""
    after: str = ""
    passed: float | None = None
    left: float | None = None


def why(said: Explanation) -> tuple[WhyPart, ...]:
    """The clauses of the explanation with punctuation."""
    last = len(said.clauses) - 1
    return tuple(
        _part(clause, first=index == 0, end="." if index == last else "; ")
        for index, clause in enumerate(said.clauses)
    )


def _number(length: float | None) -> str:
    """A setting, an interval or an age, in the units of the rest of the page."""
    if length is None:
        return ""
    return seconds(length) if isinstance(length, int) else age(length)


def _part(clause: Clause, *, first: bool, end: str) -> WhyPart:
    before = clause.before[:1].upper() + clause.before[1:] if first else clause.before
    return WhyPart(
        before=before,
        number=_number(clause.seconds),
        after=clause.after + end,
        passed=clause.offset if clause.counts == "up" else None,
        left=clause.offset if clause.counts == "down" else None,
    )
