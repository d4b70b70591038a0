"""Who held a Lease over a range, and how regularly it was renewed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from django.http import QueryDict

from dashboard.charts.histograms import MAX_BARS, RenewalChart, renewal_chart
from dashboard.charts.lanes import BusyTime, fog, shapes
from dashboard.charts.time_axis import Scale, ticks
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import BadFilter, Parameter, read_moment
from dashboard.parts import time_range
from dashboard.parts.formatting import (
    age,
    clock,
    counted,
    gap_length,
    lost_length,
    more_unwatched,
    percent,
    rough,
    seconds,
    span_of,
    thousands,
    when,
)
from dashboard.parts.key_figures import Measure, lease_measures
from dashboard.parts.lane_labels import (
    gap_seconds,
    how_ended,
    lane_marks,
    lane_role,
    shape_views,
    until_when,
    unwatched_in,
)
from dashboard.parts.lease_row import NOT_WATCHED, HeldView, numbers, time_since
from dashboard.parts.names import holder_view
from dashboard.parts.page_links import ShownTime, shown_time
from leases.actions import audit
from leases.domain.change import ChangeType
from leases.domain.figures import (
    DEFAULT_ABANDONED_AFTER,
    LONG_GAP_SECONDS,
    Span,
    Statistics,
    Totals,
    held,
    held_by,
    statistics,
)
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.terms import Gap, Life, Term
from leases.domain.watched_times import UnwatchedTime
from leases.history.lease_figures import Stretch, figures_of
from leases.history.lease_figures import read_stretch as read_stretch_figures
from leases.history.timeline_lanes import lanes
from leases.history.watched_spans import blind_between, unwatched_times
from leases.tracking.renewals import SLOT, LongestInterval
from leases.tracking.tracked_lease import Tracked


class LeasePast(msgspec.Struct, frozen=True, kw_only=True):
    """`statistics` is None if too much happened, so that changes were only counted; `totals` are
    those of `stretch`. `unseen`: seconds without a holder that they leave out. `lost_since`: the
    time without a holder counts on from then (epoch s), while nobody holds it.
    """

    shown: time_range.TimeRange
    life: Life
    busy: tuple[BusyTime, ...]
    changes: int
    edits: Sequence[datetime]
    blind: tuple[UnwatchedTime, ...]
    blind_terms: Sequence[Span]  # from the first of its terms on
    statistics: Statistics | None
    totals: Totals
    needless: bool = False  # it is a lock: the time without a holder is not counted
    unseen: float
    stretch: Stretch
    present: HeldView | None
    lost_since: float | None = None


def read_past(
    cluster: str,
    key: ObjectName,
    shown: time_range.TimeRange,
    *,
    now: datetime,
    known: datetime | None = None,
    goes_on: bool = False,
    is_lost: bool = False,
    moved: Tracked | None = None,
    abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER,
) -> LeasePast:
    """Open terms are measured up to `known`, by default the end of the stretch. `goes_on`: that is
    now; `is_lost`: somebody should hold it now, and nobody does. After a jump of the clock, history
    has the present term by the old one: `moved` has it by the new one.
    """
    since, until = shown.since, shown.until
    found = lanes(cluster, [key], since=since, until=until)
    life = found[0].life if found else Life()
    # A band of one change leaves none out: its last change is there.
    bands = [band for band in found[0].bands if band.changes > 1] if found else []
    stretch = read_stretch_figures(
        cluster, since=since, until=known or until, now=now, abandoned_after=abandoned_after
    )
    totals, kind = figures_of(stretch, [key])[key]
    # A term counts with its whole length, and so does what nobody watched before the range.
    earliest = min([since, *(one.since for one in life.terms)])
    blind = blind_between(cluster, since=earliest, until=stretch.until, now=now)
    present = _present(cluster, life, moved, known or until) if goes_on else None
    measured = None if bands else _measured(life, present, (since, stretch.until), blind)
    return LeasePast(
        shown=shown,
        life=life,
        busy=tuple(BusyTime(band.since, band.until, band.changes) for band in bands),
        changes=found[0].changes if found else 0,
        edits=audit.done_between(cluster, since, until).get(key, ()),
        blind=tuple(unwatched_times(cluster, since=since, until=until, now=now)),
        blind_terms=blind,
        statistics=measured,
        totals=totals,
        needless=kind is Kind.LOCK and any(gap.since < until for gap in _all_gaps(life)),
        unseen=_unseen(stretch, key, totals),
        stretch=stretch,
        present=present,
        lost_since=_lost_since(life, stretch, totals) if goes_on and is_lost else None,
    )


def _all_gaps(life: Life) -> Iterator[Gap]:
    yield from life.gaps
    for term in life.terms:
        yield from term.gaps


def _measured(
    life: Life, present: HeldView | None, shown: Span, blind: Sequence[Span]
) -> Statistics:
    held_for = None if present is None else present.watched
    return statistics(life, since=shown[0], until=shown[1], blind=blind, held_for=held_for)


def _present(cluster: str, life: Life, moved: Tracked | None, now: datetime) -> HeldView | None:
    term = life.terms[-1] if life.terms else None
    if term is None or term.until is not None:
        return None
    if moved is not None and moved.held_since is not None:
        return time_since(cluster, moved.held_since, now, lapses=moved.lapses)
    gaps = [(gap.since, gap.until or now) for gap in term.gaps]
    return time_since(cluster, term.since, now, lapses=gaps)


def _lost_since(life: Life, stretch: Stretch, totals: Totals) -> float | None:
    gap = life.gaps[-1] if life.gaps else None
    if gap is None or gap.until is not None or gap.since < stretch.since:
        return None  # if it began before the range, that holds no more of it later
    return stretch.until.timestamp() - totals.gap_seconds


def _unseen(stretch: Stretch, key: ObjectName, totals: Totals) -> float:
    if not stretch.blind or not totals.gap_seconds:
        return 0.0
    whole, _ = figures_of(msgspec.structs.replace(stretch, blind=()), [key])[key]
    return whole.gap_seconds - totals.gap_seconds


TERMS = 8
CLOCK = 8  # letters of a time without its date


def past_view(
    key: ObjectName,
    past: LeasePast,
    links: dict[str, Any],
    now: datetime,
    *,
    zoom: time_range.Zoom,
    end: datetime | None = None,
) -> dict[str, Any]:
    """Present the past; `zoom` and `end` are as in shape_views."""
    shown = past.shown
    scale = Scale(shown.since, shown.until)
    lane = shapes(past.life, scale, busy=past.busy)
    drawn = shape_views(lane, now, zoom=zoom, end=end, blind=past.blind_terms)
    rows = list(_rows(past, now, end))
    blind = past.stretch.unwatched_seconds
    note, lost = _note(past, now)
    unseen = more_unwatched(past.unseen)
    measured = past.statistics if rows or not _unwatched(past) else None
    measures = lease_measures(key, past.stretch.since, past.stretch.until)
    ends = "now" if end is None or end < shown.until else when(shown.until, now)
    dated = len(ends) > CLOCK
    return {
        "key": str(key),
        "shown": shown,
        "links": links,
        "note": note,
        "lost": lost,
        "lost_since": past.lost_since,
        "unseen": unseen,
        "needless": past.needless,
        "says": f"Who held it: {note}{lost}{' without a holder' if lost else ''}{unseen}",
        "measures": measures,
        "shapes": drawn,
        "role": lane_role(drawn),
        "busiest": max((s for s in drawn if s.url), key=lambda s: s.changes, default=None),
        "marks": lane_marks(past.life, past.edits, scale, now),
        "ticks": ticks(scale),
        "fogs": fog(((span.since, span.until) for span in past.blind), scale),
        "ends": ends,
        "dated": dated,
        "room": 78 if dated else 91,  # percent of the axis for the times before its end
        "rows": tuple(rows[:TERMS]),
        "more": max(0, len(rows) - TERMS),
        "figures": _figures(measured, past, measures, whole=not blind, live=end is None)
        if measured
        else (),
        "too_many": "" if past.statistics else _too_many(past.changes),
        "blind_for": age(blind) if blind else "",
    }


def _note(past: LeasePast, now: datetime) -> tuple[str, str]:
    """Say what happened, and how long it was without a holder; empty if it was not."""
    span = _span(past, now)
    seen = past.statistics
    text = f"{counted(past.changes, 'change')} {span}"
    if seen is not None:
        text = f"{counted(seen.terms, 'term')} {span}"
    if past.totals.gap_seconds:
        return f"{text}, ", age(past.totals.gap_seconds)
    if _unwatched(past):
        return f"{text}, not watched", ""
    if past.needless:
        return f"{text}; a lock needs no holder, so no time without one is counted", ""
    if seen is None:
        return text, ""
    return f"{text}, {'no time' if past.blind else 'never'} without a holder{_seen(past)}", ""


def _span(past: LeasePast, now: datetime) -> str:
    shown = past.shown
    if shown.is_young:
        first = past.life.generations[0] if past.life.generations else None
        if first is not None and first.born and first.since > shown.since:
            return f"since {when(first.since, now)}, when it was made"
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


def _rows(past: LeasePast, now: datetime, end: datetime | None) -> Iterator[dict[str, Any]]:
    """The terms in the range, newest first."""
    before = _gaps_before(past.life.gaps)
    for term in reversed(past.life.terms):
        if term.until is None or term.until > past.shown.since:
            yield _row(term, before.get(term.since), now, end, past)


def _gaps_before(gaps: Iterable[Gap]) -> dict[datetime, Gap]:
    """Return the gaps by their ends. A deletion in one does not end it: nobody held it then."""
    found: dict[datetime, Gap] = {}
    for gap in gaps:
        if gap.until is not None:
            earlier = found.pop(gap.since, None)
            since = gap.since if earlier is None else earlier.since
            found[gap.until] = msgspec.structs.replace(gap, since=since)
    return found


def _was_lost_unseen(term: Term) -> bool:
    """Whether the holder before lost it to nobody first, at a moment that nobody knows."""
    if term.began is ChangeType.CREATED:  # a Lease of its name was deleted before
        return term.inferred and term.previous is not None
    return term.inferred and (term.missed > 0 or term.began is ChangeType.TAKEN_OVER)


def _was_vacant_before(gap: Gap, life: Life) -> bool:
    """Whether nobody held it when it was first seen, nobody knows since when."""
    first_seen = {one.since for one in life.generations if not one.born}
    return gap.after is ChangeType.CREATED and gap.since in first_seen


def _row(
    term: Term, gap: Gap | None, now: datetime, end: datetime | None, past: LeasePast
) -> dict[str, Any]:
    blind = past.blind_terms
    lost = gap_seconds(gap, now) if gap else 0.0
    unseen = unwatched_in(gap, now, blind) if gap else 0.0
    length, _, unwatched = gap_length(lost, unseen).partition(", ")
    if gap and _was_vacant_before(gap, past.life):
        length = f"at least {age(lost - unseen)}" if lost > unseen else "not known"
    begun = when(term.since, now)
    lasted = held_by(term, end or now, blind)
    return {
        "holder": holder_view(term.holder),
        "at": term.since,
        "since": begun if term.began else f"before {begun}",
        "began": _began(term, now),
        "until": until_when(term.until, now, end),
        "held": (None if term.until else past.present) or HeldView.of(lasted),
        "goes_on": not (term.until or end),
        "gap": length if lost else "not known" if _was_lost_unseen(term) else "none",
        "gap_unseen": unwatched.replace(" of it", ""),
        "gap_is_long": lost - unseen >= LONG_GAP_SECONDS and not past.needless,
        "ended": how_ended(term),
        "note": ", ".join(_notes(term, now, end, lasted.unwatched, blind)),
    }


def _began(term: Term, now: datetime) -> str:
    """Between which moments it began, if nobody saw that; else ""."""
    if not term.inferred or term.inferred_since is None:
        return ""
    return f"between {when(term.inferred_since, now)} and {when(term.observed_at, now)}"


def _notes(
    term: Term, now: datetime, end: datetime | None, unseen: float, blind: Sequence[Span]
) -> Iterator[str]:
    if unseen:
        yield f"{age(unseen)} of it not watched"
    if term.gaps:
        lost = [held(gap.since, gap.until or end or now, blind) for gap in term.gaps]
        seen, not_seen = (sum(gap.watched for gap in lost), sum(gap.unwatched for gap in lost))
        length, _, rest = lost_length(seen, not_seen).partition(", ")
        aside = f", {rest}" if rest else ""
        yield f"expired and recovered {counted(len(term.gaps), 'time')}, {length} in all{aside}"
    if term.missed:
        yield f"{counted(term.missed, 'change')} of holder not seen"


class Figure(NamedTuple):
    label: str
    value: str
    detail: str
    measure: Measure | None = None
    since: float | None = None  # epoch s; the value counts on from then
    number: str = ""  # goes on with the detail
    of: Measure | None = None
    noun: str = ""


def _figures(
    seen: Statistics,
    past: LeasePast,
    measures: Mapping[str, Measure],
    *,
    whole: bool,
    live: bool,
) -> Sequence[Figure]:
    """`live`: the range ends now."""
    totals = past.totals
    share = percent(totals.gap_seconds, totals.watched_seconds)
    lost = age(totals.gap_seconds) if totals.gap_seconds else "never" if whole else "none seen"
    lost = "0 s" if past.needless else lost
    in_range = "in the range" if whole else "in the time watched"
    in_range = "none is counted: a lock needs no holder" if past.needless else in_range
    of_time = f"{share} of the {'time' if whole else 'time watched'}"
    number, _, noun = counted(totals.handovers, "hand-over").partition(" ")
    measured = f"{seen.measured:,} of" if seen.measured != totals.handovers else "of"
    return (
        *_of_terms(seen, past.present, live=live),
        Figure(
            "Without a holder",
            lost,
            of_time if totals.gap_seconds else in_range,
            measures["unheld"],
            past.lost_since if totals.gap_seconds else None,
        ),
        Figure(
            "Handed over in, p50",
            _length(seen.handover_p50),
            "from the last renewal of one to the first write of the next",
        ),
        Figure(
            "Handed over in, p95",
            _length(seen.handover_p95),
            measured,
            number=number,
            of=measures["handovers"],
            noun=noun,
        ),
    )


def _of_terms(seen: Statistics, present: HeldView | None, *, live: bool) -> Iterator[Figure]:
    unseen = NOT_WATCHED if seen.terms else "none"
    goes_on = "so far: it goes on" if live else "up to the end of the range"
    ended = "it has ended" if seen.longest else ""
    yield Figure("Terms", thousands(seen.terms), "that went on in the range")
    for label, length, detail in (
        ("Longest", seen.longest, goes_on if seen.longest_goes_on else ended),
        ("Median", seen.median, "half of them were longer"),
    ):
        since = present.since if present is not None and length == present.watched else None
        yield Figure(label, _length(length, unseen), detail, since=since)


def _length(seconds: float | None, nothing: str = "none") -> str:
    return nothing if seconds is None else age(seconds)


class LeaseStretch(time_range.StretchFilter, frozen=True, kw_only=True):
    """The page has no playhead: `instant` is the moment of the whole page; None means now.

    `before` is the cursor of the list of changes.
    """

    PARAMETERS = {
        "range": time_range.StretchFilter.PARAMETERS["range"],
        "instant": Parameter("at", read_moment),
        "since": Parameter("from", read_moment),
        "until": Parameter("to", read_moment),
        "before": Parameter("before", QueryDict.get),
    }
    instant: datetime | None = None
    before: str = ""


class LeasePastLinks(msgspec.Struct, frozen=True, kw_only=True):
    """The shown stretch of a Lease's past; `choices` are the links to others."""

    shown: time_range.TimeRange
    links: ListLinks
    choices: dict[str, Any]
    zoom: time_range.Zoom
    time: ShownTime


def read_lease_stretch(
    query: QueryDict, now: datetime, usual: str, *, instant: datetime | None = None
) -> LeaseStretch:
    """Raises BadFilter."""
    wanted = LeaseStretch.read(query, now, range=usual)
    if instant and wanted.since and wanted.since >= instant:
        raise BadFilter("from must be earlier than at.", names=("at",))
    return wanted.replace(instant=instant)


def past_links(
    path: str, wanted: LeaseStretch, now: datetime, *, watched: datetime | None
) -> LeasePastLinks:
    """`now` is the end of all that is shown; a fixed stretch zooms around its middle."""
    shown = time_range.window(wanted, now, watched=watched)
    if not shown.live:
        shown = msgspec.structs.replace(shown, at=shown.since + shown.length / 2)
    links = ListLinks(path, wanted)
    return LeasePastLinks(
        shown=shown,
        links=links,
        choices=time_range.stretch_links(links, wanted, shown, now=now),
        zoom=time_range.zoom_to(links, shown, now=now),
        time=shown_time(shown, wanted.range, wanted.instant),
    )


RANGES = (timedelta(minutes=10), timedelta(minutes=20), timedelta(hours=1))


class LevelView(msgspec.Struct, frozen=True):
    y: float
    label: str


def renewals_view(
    tracked: Tracked,
    intervals: tuple[LongestInterval, ...],
    now: datetime,
    blind: Sequence[Span] = (),
) -> dict[str, Any] | None:
    """Present the last renewals and the times `blind` that nobody watched; None if we saw none."""
    slot = timedelta(seconds=SLOT)
    # What an earlier run saw is placed by its lengths alone, and may come to lie in a pause.
    intervals = tuple(
        one
        for one in intervals
        if not any(since <= one.since and one.since + slot <= until for since, until in blind)
    )
    if not intervals:
        return None
    begin = intervals[0].since
    length = next((length for length in RANGES if now - begin <= length), RANGES[-1])
    until = datetime.fromtimestamp((now.timestamp() // SLOT + 1) * SLOT, now.tzinfo)
    scale = Scale(until - length, until)
    step = max(slot, length / MAX_BARS)
    _, duration, late = numbers(tracked)
    if tracked.holder is None:
        duration = None  # a release writes another one
    chart = renewal_chart(
        ((one.since, one.seconds) for one in intervals),
        scale,
        known_since=max(begin, scale.since),
        duration=duration,
        usual=tracked.cadence_seconds,
        late_after=late,
        bars=int(length / step),
        blind=blind,
    )
    return _view(chart, tracked, duration, length, step)


def _view(
    chart: RenewalChart,
    tracked: Tracked,
    duration: float | None,
    length: timedelta,
    step: timedelta,
) -> dict[str, Any]:
    usual, longest = tracked.cadence_seconds, chart.longest
    limit, peak = chart.limit, longest if longest and longest.phase != "held" else None
    far = duration is not None and limit is None
    return {
        "chart": chart,
        "levels": tuple(LevelView(line.y, f"{line.seconds:g} s") for line in chart.lines),
        "limit": LevelView(limit.y, f"leaseDurationSeconds: {duration:g} s, expires here")
        if limit
        else None,
        "usual": LevelView(chart.usual.y, f"usually {seconds(usual)}")
        if chart.usual and usual
        else None,
        "peak": LevelView(peak.y, seconds(round(peak.seconds, 1))) if peak else None,
        "peak_x": peak.x + peak.width / 2 if peak else 0.0,
        "peak_phase": peak.phase if peak else "",
        "range": f"longest interval per {rough(step.total_seconds())}, "
        f"last {rough(length.total_seconds())}",
        "finding": _finding(chart, usual, duration),
        "far": f"It lasts {seconds(duration)}, far above this picture." if far and duration else "",
    }


def _finding(chart: RenewalChart, usual: float | None, duration: float | None) -> str:
    said = [f"usually {seconds(usual)}"] if usual else []
    if chart.longest is not None:
        longest = seconds(round(chart.longest.seconds, 1))
        said.append(f"longest {longest} at {clock(chart.longest.since)}")
    if duration is not None:
        said.append(f"the Lease expires at {duration:g} s")
    return f"Seconds between renewals: {', '.join(said)}"
