"""A phase in words whose numbers go on with the browser's clock."""

from __future__ import annotations

import msgspec

from leases.domain.phase import Clause, Explanation


class WhyPart(msgspec.Struct, frozen=True):
    """Words around a number of seconds. `passed` and `left` say what the number is: the seconds
    since, or until, so many after the renewal was seen; both None for one that stands still.
    """

    before: str
    number: str = ""
    after: str = ""
    passed: float | None = None
    left: float | None = None


def why(said: Explanation) -> tuple[WhyPart, ...]:
    """The explanation, clause by clause, with the punctuation between them."""
    last = len(said.clauses) - 1
    return tuple(
        _part(clause, first=index == 0, end="." if index == last else "; ")
        for index, clause in enumerate(said.clauses)
    )


def _part(clause: Clause, *, first: bool, end: str) -> WhyPart:
    before = clause.before[:1].upper() + clause.before[1:] if first else clause.before
    return WhyPart(
        before=before,
        number="" if clause.seconds is None else f"{clause.seconds:.1f} s",
        after=clause.after + end,
        passed=clause.offset if clause.counts == "up" else None,
        left=clause.offset if clause.counts == "down" else None,
    )
