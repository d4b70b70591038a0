"""How long an election had no holder in watched time, and how that compares with an objective.

Time that nobody watched is neither good nor bad: it is counted apart. So is time in which nobody
needed to hold the Lease: an admin said that it may be vacant, or it was abandoned before the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain

import msgspec

from leases.domain.changes.change import HOLDER_CHANGES, Change, ChangeType
from leases.domain.past.terms import Gap, fold

Span = tuple[datetime, datetime]
NO_DATA = -1.0  # the share of time that was lost if none was watched
_ROUNDING = 1e-9


class Totals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Totals of a range, in seconds and numbers; they add up over adjacent ranges and over Leases.

    `watched_seconds`: the Lease existed, somebody watched, and a holder was needed. `gap_seconds`
    of them had no holder.
    """

    gap_seconds: float = 0.0
    watched_seconds: float = 0.0
    unwatched_seconds: float = 0.0
    handovers: int = 0
    failovers: int = 0  # hand-overs after the holder let the Lease run out
    near_misses: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            gap_seconds=self.gap_seconds + other.gap_seconds,
            watched_seconds=self.watched_seconds + other.watched_seconds,
            unwatched_seconds=self.unwatched_seconds + other.unwatched_seconds,
            handovers=self.handovers + other.handovers,
            failovers=self.failovers + other.failovers,
            near_misses=self.near_misses + other.near_misses,
        )

    @property
    def lost_share(self) -> float:
        """Return the share of the watched time without a holder; NO_DATA if none was watched."""
        if self.watched_seconds <= 0:
            return NO_DATA
        return min(1.0, max(0.0, self.gap_seconds) / self.watched_seconds)


def totals_of(
    changes: Sequence[Change],
    *,
    since: datetime,
    until: datetime,
    blind: Sequence[Span] = (),
    may_be_vacant: Sequence[Span] = (),
    abandoned: bool = False,
) -> Totals:
    """Count one Lease from `since` to before `until`.

    `changes` are those of the range, after those that define the state before it. The spans of
    `blind` do not overlap each other, nor do those of `may_be_vacant`. `abandoned`: the Lease was
    so before the range.
    """
    life = fold(changes)
    here = (since, until)
    exists = _clipped(((one.since, one.until) for one in life.generations), here)
    gaps = [*life.gaps, *chain.from_iterable(term.gaps for term in life.terms)]
    lost = _clipped(((gap.since, gap.until) for gap in gaps), here)
    unneeded = list(_unneeded(gaps, here, may_be_vacant, abandoned=abandoned))
    counted = [one for one in changes if since <= one.at < until]
    existed, needless = _watched(exists, blind), _watched(unneeded, blind)
    return Totals(
        gap_seconds=_watched(lost, blind) - needless,
        watched_seconds=existed - needless,
        unwatched_seconds=_seconds(exists) - existed,
        handovers=sum(one.change in HOLDER_CHANGES for one in counted),
        failovers=sum(one.change is ChangeType.TAKEN_OVER for one in counted),
    )


def misses(totals: Totals, objective: float) -> bool:
    """Whether less than `objective` percent of the watched time had a holder."""
    return totals.lost_share > allowed_share(objective)


def allowed_share(objective: float) -> float:
    """Return the largest share of lost time that meets an objective in percent."""
    return (100 - objective) / 100 + _ROUNDING


def budget_left(totals: Totals, objective: float) -> float:
    """Return how many seconds without a holder the objective still allows; negative: too many.

    It is measured by the time that was watched up to now.
    """
    return totals.watched_seconds * (100 - objective) / 100 - totals.gap_seconds


def _unneeded(
    gaps: Iterable[Gap], here: Span, may_be_vacant: Sequence[Span], *, abandoned: bool
) -> Iterable[Span]:
    for gap in gaps:
        if abandoned and gap.since < here[0]:
            yield from _clipped([(gap.since, gap.until)], here)
        elif gap.vacant_since is not None:
            vacant = _clipped([(max(gap.since, gap.vacant_since), gap.until)], here)
            for span in vacant:
                yield from _clipped(may_be_vacant, span)


def _clipped(spans: Iterable[tuple[datetime, datetime | None]], to: Span) -> list[Span]:
    """Return the parts of the spans inside another one. A span without an end goes on."""
    since, until = to
    cut = ((max(a, since), until if b is None else min(b, until)) for a, b in spans)
    return [(a, b) for a, b in cut if a < b]


def _seconds(spans: Iterable[Span]) -> float:
    return sum((until - since).total_seconds() for since, until in spans)


def _watched(spans: Sequence[Span], blind: Sequence[Span]) -> float:
    """Return the seconds of the spans outside the blind ones."""
    return _seconds(spans) - sum(_seconds(_clipped(blind, span)) for span in spans)
