"""Statistics of the terms of a Lease, or of a holder, over a range.

A term counts with its whole known length if any part of it is in the range. The p-th percentile is
the smallest value that p % do not exceed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import ceil
from statistics import median

import msgspec

from leases.domain.changes.change import HOLDER_CHANGES
from leases.domain.past.terms import Gap, Life, Term, seconds_within


class Statistics(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Lengths in seconds; None if there is nothing to measure."""

    terms: int
    longest: float | None
    median: float | None
    held: float  # in the range, without gaps
    leaderless: float  # in the range; for a holder: after its terms
    handovers: int  # for a holder: those it made
    handover_p50: float | None  # from the old holder's last renewal to the new one's first write
    handover_p95: float | None


def statistics(
    lives: Iterable[Life], *, since: datetime, until: datetime, holder: str | None = None
) -> Statistics:
    """Return the statistics of these Leases, or of one holder's part in them."""
    terms: list[Term] = []
    gaps: list[Gap] = []
    times: list[float] = []
    for life in lives:
        mine = [term for term in life.terms if holder in (None, term.holder)]
        terms += [
            term
            for term in mine
            if term.since < until and (term.until is None or term.until > since)
        ]
        gaps += [gap for gap in life.gaps if holder in (None, gap.holder)]
        gaps += [gap for term in mine for gap in term.gaps]
        times += _handovers(life, since, until, holder)
    lengths = [((term.until or until) - term.since).total_seconds() for term in terms]
    inside = sum(seconds_within(term, since, until) for term in terms)
    paused = sum(seconds_within(gap, since, until) for term in terms for gap in term.gaps)
    return Statistics(
        terms=len(terms),
        longest=max(lengths, default=None),
        median=median(lengths) if lengths else None,
        held=inside - paused,
        leaderless=sum(seconds_within(gap, since, until) for gap in gaps),
        handovers=len(times),
        handover_p50=percentile(times, 50),
        handover_p95=percentile(times, 95),
    )


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return None if there are no values."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


def _handovers(life: Life, since: datetime, until: datetime, holder: str | None) -> list[float]:
    """Return the seconds that each hand-over in the range took, of this holder or of all."""
    came = {term.since: term.holder for term in life.terms}
    return [
        (gap.until - (gap.renewed_at or gap.since)).total_seconds()
        for gap in life.gaps
        if gap.until is not None
        and gap.ended_by in HOLDER_CHANGES
        and since <= gap.until < until
        and gap.holder is not None
        and holder in (None, came.get(gap.until))
    ]
