"""Who held a Lease over a range: its lane, its terms and their statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from dashboard.charts.lane_geometry import fog, shapes
from dashboard.charts.time_scale import Scale
from dashboard.charts.time_ticks import ticks
from dashboard.pages.lease.past_terms_query import LeasePast
from dashboard.parts.formatting import age, counted, percent, span_of, thousands, when
from dashboard.parts.frame.stretch_links import Zoom
from dashboard.parts.holder_name import holder_view
from dashboard.parts.lane_labels import (
    how_ended,
    lane_marks,
    lane_role,
    shape_view,
    until_when,
)
from dashboard.parts.query.time_range import TimeRange
from leases.domain.past.term_statistics import Statistics
from leases.domain.past.terms import Gap, Life, Term
from leases.domain.severity import LONG_GAP_SECONDS

TERMS = 8


def past_view(
    past: LeasePast,
    links: dict[str, Any],
    now: datetime,
    *,
    zoom: Zoom,
    end: datetime | None = None,
) -> dict[str, Any]:
    """Present the past; `zoom` and `end` are as in shape_view."""
    shown = past.shown
    scale = Scale(shown.since, shown.until)
    drawn = [
        shape_view(shape, now, zoom=zoom, end=end)
        for shape in shapes(past.life, scale, busy=past.busy)
    ]
    rows = list(_rows(past.life, shown.since, now, end))
    blind = sum(span.seconds for span in past.blind)
    note = _note(past, now)
    figures = past.figures if rows or not _unwatched(past) else None
    return {
        "shown": shown,
        "links": links,
        "note": note,
        "says": f"Who held it: {note}",
        "shapes": drawn,
        "role": lane_role(drawn),
        "busiest": max((s for s in drawn if s.url), key=lambda s: s.changes, default=None),
        "marks": lane_marks(past.life, past.edits, scale, now),
        "ticks": ticks(scale),
        "fogs": fog(((span.since, span.until) for span in past.blind), scale),
        "ends": "now" if end is None or end < shown.until else when(shown.until, now),
        "rows": tuple(rows[:TERMS]),
        "more": max(0, len(rows) - TERMS),
        "figures": _figures(figures, whole=not past.blind) if figures else (),
        "too_many": "" if past.figures else _too_many(past.changes),
        "blind_for": age(blind) if blind else "",
    }


def with_held_since(view: dict[str, Any], held_since: datetime, now: datetime) -> dict[str, Any]:
    """After a jump of the clock, history has the begin of the present term by the old clock."""
    held_for = age((now - held_since).total_seconds())
    for row in view["rows"]:
        if row["held_since"] is not None:
            row.update(held_since=held_since.timestamp(), held_for=held_for)
    return view


def _note(past: LeasePast, now: datetime) -> str:
    span = _span(past.shown, now)
    if past.figures is None:
        return f"{counted(past.changes, 'change')} {span}"
    text = f"{counted(past.figures.terms, 'term')} {span}"
    lost = past.figures.leaderless
    if lost:
        return f"{text}, {age(lost)} without a holder"
    if _unwatched(past):
        return f"{text}, not watched"
    return f"{text}, {'no time' if past.blind else 'never'} without a holder{_seen(past)}"


def _span(shown: TimeRange, now: datetime) -> str:
    if shown.is_young:
        return f"since {when(shown.since, now)}, when watching began"
    if shown.live:
        return f"in {span_of(shown.length)}"
    return f"from {when(shown.since, now)} to {when(shown.until, now)} ({span_of(shown.length)})"


def _unwatched(past: LeasePast) -> bool:
    return any(one.covers(past.shown.since, past.shown.until) for one in past.blind)


def _seen(past: LeasePast) -> str:
    return " seen" if past.blind else ""


def _too_many(changes: int) -> str:
    return (
        f"{counted(changes, 'change')} are too many to measure terms here: choose a shorter range."
    )


def _rows(
    life: Life, since: datetime, now: datetime, end: datetime | None
) -> Iterator[dict[str, Any]]:
    """The terms in the range, newest first."""
    before = {gap.until: gap for gap in life.gaps if gap.until is not None}
    for term in reversed(life.terms):
        if term.until is None or term.until > since:
            yield _row(term, before.get(term.since), now, end)


def _row(term: Term, gap: Gap | None, now: datetime, end: datetime | None) -> dict[str, Any]:
    lost = (term.since - gap.since).total_seconds() if gap else 0.0
    begun = when(term.since, now)
    return {
        "holder": holder_view(term.holder),
        "at": term.since,
        "since": begun if term.began else f"before {begun}",
        "until": until_when(term.until, now, end),
        "held_for": age(((term.until or end or now) - term.since).total_seconds()),
        "held_since": None if term.until or end else term.since.timestamp(),
        "gap": age(lost) if lost else "none",
        "gap_is_long": lost >= LONG_GAP_SECONDS,
        "ended": how_ended(term),
        "note": ", ".join(_notes(term, now, end)),
    }


def _notes(term: Term, now: datetime, end: datetime | None) -> Iterator[str]:
    if term.gaps:
        lost = sum(((gap.until or end or now) - gap.since).total_seconds() for gap in term.gaps)
        yield f"expired and recovered {counted(len(term.gaps), 'time')}, {age(lost)} in all"
    if term.missed:
        yield f"{counted(term.missed, 'change')} of holder not seen"
    if term.inferred and term.inferred_since:
        yield f"began between {when(term.inferred_since, now)} and {when(term.observed_at, now)}"


def _figures(seen: Statistics, *, whole: bool) -> Sequence[tuple[str, str, str]]:
    share = percent(seen.leaderless, seen.held + seen.leaderless)
    lost = age(seen.leaderless) if seen.leaderless else "never" if whole else "none seen"
    in_range = "in the range" if whole else "in the time watched"
    of_time = f"{share} of the time" if seen.leaderless else in_range
    return (
        ("Terms", thousands(seen.terms), "that went on in the range"),
        ("Longest", _length(seen.longest), "so far, if it goes on"),
        ("Median", _length(seen.median), "half of them were longer"),
        ("Without a holder", lost, of_time),
        (
            "Handed over in, p50",
            _length(seen.handover_p50),
            "from the last renewal of one to the first write of the next",
        ),
        (
            "Handed over in, p95",
            _length(seen.handover_p95),
            f"of {counted(seen.handovers, 'hand-over')}",
        ),
    )


def _length(seconds: float | None) -> str:
    return "none" if seconds is None else age(seconds)
