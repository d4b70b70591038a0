"""What terms and changes add up to: statistics, abandonment, reliability and its periods.

A term counts with its whole known length if any part of it is in the range. The p-th percentile is
the smallest value that p % do not exceed.

Two kinds of Leases are abandoned: those that are vacant for long, and those that were never
renewed, neither by a holder who came and expired nor by anybody at all. A heartbeat is never
abandoned, because its end tells of a stopped node, and a vacant lock is only free.

Time that nobody watched is neither good nor bad: it is counted apart. Time in which nobody needed
to hold the Lease is not counted: it is a lock, it was abandoned by then, or an admin said that it
may be vacant. A hand-over is a term that came from another holder, also if the Lease was deleted
and made anew in between. Every page, metric and export takes its figures from `totals_in`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import chain
from math import ceil
from statistics import median
from typing import Any

import msgspec

from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.steady_clock import EARLIEST, plus
from leases.domain.terms import Gap, Life, PastPhase, Term, fold
from leases.domain.watched_times import BRIEF

Span = tuple[datetime, datetime]


class Statistics(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Lengths in seconds; None if there is nothing to measure."""

    terms: int
    longest: float | None
    longest_goes_on: bool  # at the end of the range
    median: float | None
    measured: int  # hand-overs with a length: none of it was unwatched, and the Lease was free
    handover_p50: float | None  # from the old holder's last renewal to the new one's first write
    handover_p95: float | None


def statistics(
    life: Life,
    *,
    since: datetime,
    until: datetime,
    blind: Sequence[Span] = (),
    held_for: float | None = None,
) -> Statistics:
    """Return the statistics of a Lease. Nobody watched in the times of `blind`.

    A term of which nobody watched a second counts, and has no length. `held_for`: how long somebody
    watched the open term; None: as long as its start says.
    """
    terms = [
        term
        for term in life.terms
        if term.since < until and (term.until is None or term.until > since)
    ]
    found = ((_length(term, until, held_for, blind), term.until is None) for term in terms)
    known = [one for one in found if one[0]]
    longest, goes_on = max(known, default=(None, False))
    times = _handover_times(life, since, until, blind)
    return Statistics(
        terms=len(terms),
        longest=longest,
        longest_goes_on=goes_on,
        median=median(length for length, _ in known) if known else None,
        measured=len(times),
        handover_p50=percentile(times, 50),
        handover_p95=percentile(times, 95),
    )


def _length(term: Term, until: datetime, held_for: float | None, blind: Sequence[Span]) -> float:
    if term.until is None and held_for is not None:
        return held_for
    return held_by(term, until, blind).watched


class Held(msgspec.Struct, frozen=True, gc=False):
    """How long a holder held a Lease, or nobody did, in seconds: the watched time is the figure."""

    watched: float
    unwatched: float


LITTLE = 0.1  # of a time


def held_by(term: Term, end: datetime, blind: Sequence[Span]) -> Held:
    """Measure a term, up to `end` while it goes on, without the gaps inside it."""
    lapses = [(gap.since, gap.until or end) for gap in term.gaps]
    return held(term.since, term.until or end, blind, lapses)


def held(
    since: datetime, until: datetime, blind: Sequence[Span], lapses: Sequence[Span] = ()
) -> Held:
    """Measure a term, or what has passed of it. Every page, live row and JSON asks here.

    `lapses`, in order: when it was expired, until it recovered.
    """
    here = list(without((since, max(since, until)), lapses))
    whole, watched = span_seconds(here), watched_seconds(here, blind)
    # As of a pause of a watch: so little of so much leaves nothing in doubt.
    if watched > 0 and whole - watched < min(BRIEF.total_seconds(), LITTLE * whole):
        return Held(whole, 0.0)
    return Held(watched, whole - watched)


def watched_gap(change: Change, blind: Sequence[Span]) -> float | None:
    """Return how long somebody watched the time without a holder that a change ended."""
    gap = gap_before(change, blind)
    return None if gap is None else gap.watched


def gap_before(change: Change, blind: Sequence[Span]) -> Held | None:
    """Measure the time without a holder that a change ended."""
    if change.gap_seconds is None:
        return None
    since = plus(change.at, -timedelta(seconds=change.gap_seconds))
    return held(since, change.at, blind)


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return None if there are no values."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


def is_watched(at: datetime, blind: Iterable[Span]) -> bool:
    """Whether somebody watched at that moment; a change of another moment is in no figure. What a
    list shows at the end of a time that nobody watched was written in it.
    """
    return not any(since <= at <= until for since, until in blind)


def _handovers(life: Life, since: datetime, until: datetime, blind: Sequence[Span]) -> list[Term]:
    """Return the terms that came from another holder and began in the range, before our eyes."""
    return [
        term
        for term in life.terms
        if since <= term.since < until and term.is_handover and is_watched(term.since, blind)
    ]


def _handover_times(
    life: Life, since: datetime, until: datetime, blind: Sequence[Span]
) -> list[float]:
    """Return the seconds that each hand-over in the range took, if all of it was watched."""
    before = {gap.until: gap.renewed_at or gap.since for gap in life.gaps}
    waits = [
        (before[term.since], term.since)
        for term in _handovers(life, since, until, blind)
        if term.since in before
    ]
    return [span_seconds([wait]) for wait in waits if not _clipped(blind, wait)]


# The smaller, the worse.
SEVERITY = {Phase.EXPIRED: 0, Phase.VACANT: 1, Phase.LATE: 2, Phase.UNTIMED: 3, Phase.HELD: 4}
PAST_SEVERITY = {PastPhase.EXPIRED: 0, PastPhase.VACANT: 1, PastPhase.HELD: 2}
# A Lease that flaps stands below those that nobody can rely on now, above all others.
FLAPPING_SEVERITY = 0.7
# A Lease that nobody need hold: abandoned, or an admin said that it may be vacant.
EXCUSED_SEVERITY = 5
TROUBLE = (Phase.EXPIRED, Phase.VACANT, Phase.LATE)
LONG_GAP_SECONDS = 30.0  # from here on, a gap without a holder is shown in red
# A normal hand-over leaves an election vacant: client-go's contenders look every 2 s, others
# every 15 s.
VACANT_GRACE = timedelta(seconds=30)


def severity(phase: Phase, *, flaps: bool, excused: bool = False) -> float:
    own = EXCUSED_SEVERITY if excused else SEVERITY[phase]
    return min(own, FLAPPING_SEVERITY) if flaps else own


def is_in_trouble(phase: Phase, kind: Kind, *, excused: bool = False) -> bool:
    """A vacant election is in trouble unless it is excused; a vacant lock is only free."""
    if excused:
        return False
    return phase in TROUBLE and (phase is not Phase.VACANT or kind is Kind.ELECTION)


def needs_attention(
    phase: Phase, kind: Kind, *, since: datetime, now: datetime, excused: bool = False
) -> bool:
    """Whether a Lease that is in this phase since `since` belongs on the Attention list."""
    if phase is Phase.VACANT and now - since < VACANT_GRACE:
        return False
    return is_in_trouble(phase, kind, excused=excused)


DEFAULT_ABANDONED_AFTER = timedelta(hours=1)


def abandoned_from(
    phase: Phase,
    kind: Kind,
    *,
    since: datetime,
    renewed_at: datetime | None,
    held_since: datetime | None,
    threshold: timedelta,
) -> datetime | None:
    """Return from when a Lease counts as abandoned, unless somebody writes; None: never.

    It is in this phase since `since`. `renewed_at`: when it was renewed last; None: nobody ever
    held or renewed it. `held_since`: when the holder who expired came.
    """
    if kind is Kind.HEARTBEAT:
        return None
    if phase is Phase.VACANT and kind is not Kind.LOCK:
        if renewed_at is None:
            return plus(since, min(VACANT_GRACE, threshold))
        return plus(min(since, renewed_at), threshold)
    if phase is Phase.EXPIRED and renewed_at is not None and held_since is not None:
        return plus(since, threshold) if renewed_at <= held_since else None
    return None


QUARTER_MONTHS = 3
DAY = timedelta(days=1)


class Period(StrEnum):
    DAY = "day"
    WEEK = "week"
    QUARTER = "quarter"


def first_day(period: Period, day: date) -> date:
    """Return the first day of the period that contains this day."""
    if period is Period.WEEK:
        return day - timedelta(days=day.weekday())
    if period is Period.QUARTER:
        return day.replace(month=(day.month - 1) // QUARTER_MONTHS * QUARTER_MONTHS + 1, day=1)
    return day


def next_first_day(period: Period, first: date) -> date:
    """Return the first day of the following period."""
    if period is Period.QUARTER:
        return first_day(period, first + timedelta(days=QUARTER_MONTHS * 31))
    return first + timedelta(days=7 if period is Period.WEEK else 1)


def days_of(period: Period, first: date) -> list[date]:
    number = (next_first_day(period, first) - first).days
    return [first + timedelta(days=day) for day in range(number)]


def start_of(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


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
    abandoned_after: timedelta | None = None,
) -> Totals:
    """Count one Lease from `since` to before `until`.

    `changes` are those of the range, after those that define the state before it. The spans of
    `blind` do not overlap each other, nor do those of `may_be_vacant`.
    """
    if not changes:
        return Totals()
    return totals_in(
        fold(changes),
        changes[-1].kind,
        since=since,
        until=until,
        blind=blind,
        may_be_vacant=may_be_vacant,
        abandoned_after=abandoned_after,
    )


def totals_in(
    life: Life,
    kind: Kind,
    *,
    since: datetime,
    until: datetime,
    blind: Sequence[Span] = (),
    may_be_vacant: Sequence[Span] = (),
    abandoned_after: timedelta | None = None,
) -> Totals:
    """Do the same for a folded life. All figures of a Lease in a range come from here."""
    here = (since, until)
    between = ((gap.since, gap.until) for gap in life.gaps if gap.after is ChangeType.DELETED)
    exists = _clipped(chain(((one.since, one.until) for one in life.generations), between), here)
    found = [(gap, _before(life, gap)) for gap in life.gaps]
    found += [(gap, term.since) for term in life.terms for gap in term.gaps]
    gaps = [
        needed(
            gap,
            kind,
            here,
            held_since=held_since,
            may_be_vacant=may_be_vacant,
            abandoned_after=abandoned_after,
        )
        for gap, held_since in found
    ]
    lost = watched_seconds([span for spans, _ in gaps for span in spans], blind)
    needless = watched_seconds([span for _, spans in gaps for span in spans], blind)
    handovers = _handovers(life, since, until, blind)
    existed = watched_seconds(exists, blind)
    return Totals(
        gap_seconds=lost,
        watched_seconds=existed - needless,
        unwatched_seconds=span_seconds(exists) - existed,
        handovers=len(handovers),
        failovers=sum(term.began is ChangeType.TAKEN_OVER for term in handovers),
    )


def unheld_seconds(gap: Gap, kind: Kind, here: Span, blind: Sequence[Span], **more: Any) -> float:
    """Return how long one gap counts as without a holder in a range; `more` as for `needed`."""
    return watched_seconds(needed(gap, kind, here, **more)[0], blind)


def needed(
    gap: Gap,
    kind: Kind,
    here: Span,
    *,
    held_since: datetime | None,
    may_be_vacant: Sequence[Span] = (),
    abandoned_after: timedelta | None = None,
) -> tuple[list[Span], list[Span]]:
    """Return the parts of a gap inside a range in which somebody needed to hold the Lease, and the
    others. `held_since`: when the holder came whose expiry began it.
    """
    whole = _clipped([(gap.since, gap.until)], here)
    if kind is Kind.LOCK:
        return [], whole
    rest = []
    at = None
    if abandoned_after is not None:
        at = _abandoned_at(gap, held_since, kind, abandoned_after)
    if at is not None:
        rest = _clipped([(at, None)], whole[0]) if whole else []
        whole = [part for span in whole for part in _clipped([(EARLIEST, at)], span)]
    if gap.vacant_since is None:
        return whole, rest
    marked = [
        part
        for span in whole
        for vacant in _clipped([(gap.vacant_since, None)], span)
        for part in _clipped(may_be_vacant, vacant)
    ]
    return [part for span in whole for part in without(span, sorted(marked))], [*marked, *rest]


def without(span: Span, parts: Sequence[Span]) -> Iterable[Span]:
    """Yield what is left of a span without these parts of it, which are in order."""
    since, until = span
    for start, end in _clipped(parts, span):
        if since < start:
            yield since, start
        since = max(since, end)
    if since < until:
        yield since, until


def _before(life: Life, gap: Gap) -> datetime | None:
    """Return when the holder came whose term a gap follows."""
    index = bisect_right(life.terms, gap.since, key=lambda term: term.since)
    return life.terms[index - 1].since if index else None


def _abandoned_at(
    gap: Gap, held_since: datetime | None, kind: Kind, threshold: timedelta
) -> datetime | None:
    """Return from when on nobody was expected to end a gap; None: somebody always was."""
    if gap.vacant_since is not None:
        held = gap.holder is not None or gap.vacant_since > gap.since
        return abandoned_from(
            Phase.VACANT,
            kind,
            since=gap.vacant_since,
            renewed_at=gap.vacant_since if held else gap.renewed_at,
            held_since=None,
            threshold=threshold,
        )
    if gap.after is not ChangeType.EXPIRED:
        return None
    return abandoned_from(
        Phase.EXPIRED,
        kind,
        since=gap.since,
        renewed_at=gap.renewed_at,
        held_since=held_since,
        threshold=threshold,
    )


def misses(totals: Totals, objective: float, remaining: float = 0.0) -> bool:
    """Whether less than `objective` percent of the watched time had a holder.

    `remaining`: seconds of the period that are still to come; its whole budget must be spent.
    """
    return budget_left(totals, objective, remaining) < -_ROUNDING * _whole(totals, remaining)


def is_at_risk(totals: Totals, objective: float) -> bool:
    """Whether less than `objective` percent of the time watched so far had a holder."""
    return totals.lost_share > allowed_share(objective)


def allowed_share(objective: float) -> float:
    """Return the largest share of lost time that meets an objective in percent."""
    return (100 - objective) / 100 + _ROUNDING


def budget_left(totals: Totals, objective: float, remaining: float = 0.0) -> float:
    """Return how many seconds without a holder the objective still allows; negative: too many.

    The budget is that of the watched time and of the `remaining` seconds of the period.
    """
    return _whole(totals, remaining) * (100 - objective) / 100 - totals.gap_seconds


def _whole(totals: Totals, remaining: float) -> float:
    return totals.watched_seconds + remaining


def _clipped(spans: Iterable[tuple[datetime, datetime | None]], to: Span) -> list[Span]:
    """Return the parts of the spans inside another one. A span without an end goes on."""
    since, until = to
    cut = ((max(a, since), until if b is None else min(b, until)) for a, b in spans)
    return [(a, b) for a, b in cut if a < b]


def span_seconds(spans: Iterable[Span]) -> float:
    return sum((until - since).total_seconds() for since, until in spans)


def watched_seconds(spans: Sequence[Span], blind: Sequence[Span]) -> float:
    """Return the seconds of the spans in which somebody watched. A process that stood still lost
    its watch as well: the times of `blind` may overlap.
    """
    if not blind:
        return span_seconds(spans)
    ordered = sorted(blind)
    return span_seconds(part for span in spans for part in without(span, ordered))
