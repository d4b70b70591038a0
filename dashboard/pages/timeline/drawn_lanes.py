"""The lanes of the timeline as pictures, as rows of text, and as JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from dashboard.charts.lanes import MAX_SHAPES, BusyTime, Shape, shapes
from dashboard.charts.time_axis import Scale
from dashboard.pages.timeline.lane_query import TROUBLED, Lanes, TimelineLane
from dashboard.parts import lane_labels
from dashboard.parts.as_of import (
    ABSENT,
    FLAPPING,
    SIGNS,
    counted_as,
    group_titles,
    stood,
    stood_when_watched,
)
from dashboard.parts.formatting import age, counted, gap_length, listed, when
from dashboard.parts.incident_line import IncidentBand
from dashboard.parts.key_figures import lease_measures
from dashboard.parts.lease_row import FREE, NOT_WATCHED, HeldView
from dashboard.parts.names import HolderView, holder_view, shown_holder, shown_name
from dashboard.parts.page_links import ShownTime, holder_url, lease_url_at
from dashboard.parts.time_range import TimeRange, Zoom
from leases.domain.change import ChangeType
from leases.domain.figures import Span, held, totals_in
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.terms import Gap, PastPhase, PastState, Term
from leases.domain.watched_times import UnwatchedTime
from leases.history.lease_figures import Stretch
from leases.wire.microtime import format_microtime, microtime_or_none

SHAPES_OF_PAGE = 700
FEWEST_SHAPES = 12


class AsOf(msgspec.Struct, frozen=True):
    """The holder at the playhead; `word` is shown if there is none."""

    holder: HolderView | None
    word: str
    title: str
    css: str


def lane_views(
    cluster: str,
    lanes: Lanes,
    shown: TimeRange,
    *,
    unseen: str,
    now: datetime,
    time: ShownTime,
    zoom: Zoom,
    end: datetime | None = None,
    bands: Mapping[ObjectName, Sequence[IncidentBand]] = {},
) -> list[dict[str, Any]]:
    """`unseen` is the part that nobody watched; `zoom` and `end` are as in shape_views; `bands` are
    the incidents of each Lease.
    """
    sizes = Counter(lane.place.group for lane in lanes.page)
    titles = group_titles(
        shown.at, now=now, watched=lanes.watched, unseen=unseen, groups=tuple(sizes)
    )
    views, before, blind = [], None, lanes.blind_terms
    scale, most = Scale(shown.since, shown.until), shapes_of_each(len(lanes.page))
    for lane in lanes.page:
        group = lane.place.group
        title = "" if group == before else titles[group]
        drawn = shapes(lane.life, scale, busy=lane.busy, most=most)
        view = _lane_view(cluster, lane, shown, now, (title, sizes[group]))
        view["shapes"] = lane_labels.shape_views(drawn, now, zoom=zoom, end=end, blind=blind)
        view["url"] = lease_url_at(cluster, lane.key, time)
        view["bands"] = bands.get(lane.key, ())
        view["role"] = lane_labels.lane_role(view["shapes"], linked=bool(view["bands"]))
        lost = _unheld(lane, lanes.stretch)
        if lost is not None and lanes.stretch is not None:
            measures = lease_measures(lane.key, lanes.stretch.since, lanes.stretch.until)
            view["unheld"] = (measures["unheld"], age(lost))
        view["says"] = says(
            lane, drawn, lost=lost or 0.0, unseen=unseen, incidents=len(view["bands"])
        )
        views.append(view)
        before = group
    return views


def shapes_of_each(lanes: int) -> int:
    """How many shapes each lane may have, so that the page stays below its maximum."""
    return max(FEWEST_SHAPES, min(MAX_SHAPES, SHAPES_OF_PAGE // max(1, lanes)))


def holders_of(views: Iterable[dict[str, Any]]) -> list[HolderView]:
    shapes = (shape for view in views for shape in view["shapes"])
    named = {shape.holder.identity: shape.holder for shape in shapes if shape.holder}
    return list(named.values())


def _lane_view(
    cluster: str,
    lane: TimelineLane,
    shown: TimeRange,
    now: datetime,
    group: tuple[str, int],
) -> dict[str, Any]:
    born = bool(lane.life.generations) and lane.life.generations[0].born
    return {
        "key": str(lane.key),
        "namespace": lane.key.namespace,
        "name": lane.key.name,
        "shown": shown_name(cluster, lane.key),
        "dot": dot_of(lane, shown.at, now=now, follows=shown.follows),
        "kind": lane.kind.value if lane.kind else "",
        "group": group[0],
        "group_size": group[1],
        "of_now": lane.place.group == TROUBLED,
        "marks": lane_labels.lane_marks(
            lane.life, lane.edits, Scale(shown.since, shown.until), now
        ),
        "as_of": as_of_view(lane.standing, now, watched=lane.watched),
        "holder_url": _holder_url(cluster, lane.standing.holder, shown),
        "before": "absent" if born or stood(lane.standing) == ABSENT else "unknown",
    }


def _holder_url(cluster: str, holder: str | None, shown: TimeRange) -> str:
    at = None if shown.follows else shown.at
    return holder_url(cluster, holder, at=at, in_leases=True) if holder else ""


def as_of_view(standing: PastState, now: datetime, *, watched: bool) -> AsOf:
    """The holder at an instant; for an unwatched time only the tooltip has the last known one."""
    view = holder_view(standing.holder)
    since = f" since {when(standing.since, now)}" if standing.since else ""
    if not watched and stood(standing) != ABSENT:
        last = f"nobody watched then; last known: {_stood(standing)}{since}"
        return AsOf(None, "not watched", last, "unsure")
    if standing.phase is PastPhase.HELD:
        return AsOf(view, "", f"{_stood(standing)}{since}", "")
    if standing.phase in (PastPhase.EXPIRED, PastPhase.VACANT):
        return AsOf(None, "no holder", f"{_stood(standing)}{since}", "none")
    word = {"absent": "did not exist", "deleted": "no such Lease"}.get(stood(standing), "unknown")
    return AsOf(None, word, f"{word}{since}", "absent")


def _stood(standing: PastState) -> str:
    if standing.phase is PastPhase.EXPIRED and standing.holder:
        return f"expired, still naming {shown_holder(standing.holder)}"
    if standing.phase is PastPhase.HELD and standing.holder:
        return shown_holder(standing.holder)
    return standing.phase.value


def _unheld(lane: TimelineLane, stretch: Stretch | None) -> float | None:
    """How long it was without a holder; None where its changes are only counted."""
    if stretch is None or lane.busy:
        return None
    totals = totals_in(
        lane.life,
        lane.kind or Kind.UNKNOWN,
        since=stretch.since,
        until=stretch.until,
        blind=stretch.blind,
        may_be_vacant=stretch.marks.get(lane.key, ()),
        abandoned_after=stretch.abandoned_after,
    )
    return totals.gap_seconds


def says(
    lane: TimelineLane, drawn: Sequence[Shape], *, lost: float, unseen: str = "", incidents: int = 0
) -> str:
    """Sum up a lane in one sentence, for screen readers. `lost`: seconds without a holder."""
    key, changes = lane.key, lane.changes
    if unseen == "whole":
        return f"{key}: not watched in this stretch."
    if not drawn:
        return f"{key}: nothing is known of it in this stretch."
    holders = dict.fromkeys(
        view.short
        for shape in drawn
        for view in map(holder_view, (shape.term.holder,) if shape.term else shape.holders)
        if view
    )
    held = f"held by {listed(list(holders))}" if holders else "held by nobody"
    quiet = ", no change seen, for nobody watched all of it" if unseen else ", no change"
    times = f", {counted(changes, 'change')}" if changes else quiet
    gap = f", {age(lost)} without a holder" if lost else ""
    with_incidents = f", {counted(incidents, 'incident')}" if incidents else ""
    return f"{key}: {held}{times}{gap}{with_incidents}."


def table_rows(
    cluster: str,
    lanes: Lanes,
    scale: Scale,
    *,
    now: datetime,
    time: ShownTime,
    zoom: Zoom,
    end: datetime | None = None,
) -> list[dict[str, Any]]:
    """The shapes of all lanes in words; `zoom` and `end` as in shape_views."""
    rows: list[dict[str, Any]] = []
    most = shapes_of_each(len(lanes.page))
    for lane in lanes.page:
        drawn = shapes(lane.life, scale, busy=lane.busy, most=most)
        url = lease_url_at(cluster, lane.key, time)
        rows += _of_lane(url, lane, drawn, now, zoom, end, lanes.blind_terms)
    return rows


def _of_lane(
    url: str,
    lane: TimelineLane,
    drawn: tuple[Shape, ...],
    now: datetime,
    zoom: Zoom,
    end: datetime | None,
    blind: Sequence[Span],
) -> list[dict[str, Any]]:
    at = as_of_view(lane.standing, now, watched=lane.watched)
    head = {
        "lease": str(lane.key),
        "url": url,
        "as_of": f"at the playhead: {at.holder.identity if at.holder else at.word}",
        "rows": max(1, len(drawn)),
    }
    if not drawn:
        return [head | {"holder": "nothing known"}]
    rows = [_words(shape, lane.kind, now, zoom, end, blind) for shape in drawn]
    return [head | rows[0], *rows[1:]]


def _words(
    shape: Shape,
    kind: Kind | None,
    now: datetime,
    zoom: Zoom,
    end: datetime | None,
    blind: Sequence[Span],
) -> dict[str, Any]:
    """The words of one shape; a gap, or the part of a term between two, is shown whole, also
    outside the stretch.
    """
    since, until, bad = shape.since, cast("datetime | None", shape.until), False
    if shape.term is not None:
        since, until, ended = _part(shape.term, shape.since)
        lasted = held(since, until or end or now, blind)
        view = HeldView.of(lasted)
        unseen = f"{age(lasted.unwatched)} of it not watched" if lasted.unwatched else ""
        notes = (lane_labels.end_word(ended), unseen if view.length != NOT_WATCHED else "")
        holder, length = shown_holder(shape.term.holder), view.length
        note = ", ".join(filter(None, notes))
    elif shape.gap is not None:
        since, until, holder = shape.gap.since, shape.gap.until, "no holder"
        lost = lane_labels.gap_seconds(shape.gap, end or now)
        not_seen = lane_labels.unwatched_in(shape.gap, end or now, blind)
        length, _, note = gap_length(lost, not_seen).partition(", ")
        bad = not_seen < lost and kind is not Kind.LOCK  # a lock needs no holder
    else:
        holder, note = counted(shape.changes, "change"), lane_labels.among(shape)
        length = age(shape.seconds)
    return {
        "holder": holder,
        "since": when(since, now),
        "until": lane_labels.until_when(until, now, end),
        "length": length,
        "note": note,
        "bad": bad,
        "zoom_url": zoom(shape.since, shape.until) if shape.changes else "",
    }


def _part(term: Term, at: datetime) -> tuple[datetime, datetime | None, ChangeType | None]:
    """The part of a term, between its gaps, that a moment is in, and how that ended."""
    found = term.since, term.until, term.ended
    for part in term.parts:
        if part[0] <= at:
            found = part
    return found


def lane_item(
    cluster: str, lane: TimelineLane, shown: TimeRange, blind: Sequence[UnwatchedTime]
) -> dict[str, Any]:
    """One Lease over the stretch. Terms and gaps are whole, also outside it."""
    standing = lane.standing
    return {
        "cluster": cluster,
        "namespace": lane.key.namespace,
        "name": lane.key.name,
        "kind": lane.kind.value if lane.kind else None,
        "at": format_microtime(shown.at),
        "phase": stood(standing),
        "holder": standing.holder,
        "since": microtime_or_none(standing.since),
        "watched": lane.watched,
        "from": format_microtime(shown.since),
        "to": format_microtime(shown.until),
        "terms": [_term(term) for term in lane.life.terms if _inside(term, shown)],
        "gaps": [_gap(gap) for gap in lane.life.gaps if _inside(gap, shown)],
        "reconfigured": [
            {"at": format_microtime(change.at), "fields": list(change.fields)}
            for change in lane.life.reconfigurations
        ],
        "unwatched": [_span(one) for one in blind],
        "changes": lane.changes,
        "busy": [_span(one) | {"changes": one.changes} for one in lane.busy],
    }


def _span(span: UnwatchedTime | BusyTime) -> dict[str, Any]:
    return {"since": format_microtime(span.since), "until": format_microtime(span.until)}


def _inside(span: Term | Gap, shown: TimeRange) -> bool:
    return span.since < shown.until and (span.until is None or span.until > shown.since)


def _term(term: Term) -> dict[str, Any]:
    return {
        "holder": term.holder,
        "uid": term.uid,
        "began": term.began and term.began.value,
        "since": format_microtime(term.since),
        "until": microtime_or_none(term.until),
        "ended": term.ended and term.ended.value,
        "missed": term.missed,
        "inferred": term.inferred,
        "inferred_since": microtime_or_none(term.inferred_since),
        "gaps": [_gap(gap) for gap in term.gaps],
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "since": format_microtime(gap.since),
        "until": microtime_or_none(gap.until),
        "after": gap.after and gap.after.value,
        "holder": gap.holder,
        "ended_by": gap.ended_by and gap.ended_by.value,
    }


_THERE = ("held", "expired", "vacant", FREE)


class Instant(msgspec.Struct, frozen=True):
    """How many of the Leases that existed had no holder; `says` is set if that is unknown."""

    css: str
    icon: str
    nobody: int
    there: int
    unknown: int
    says: str
    of: str = ""  # "drawn" where not all of them are counted
    drawn_part: bool = False  # the page draws some of them


def dot_of(lane: TimelineLane, at: datetime, *, now: datetime, follows: bool) -> dict[str, str]:
    """If the playhead follows the clock, the store knows more than history."""
    word = stood_when_watched(lane.standing, watched=lane.watched)
    if follows and lane.watched:
        flaps = lane.place.flaps and lane.phase not in ("expired", "vacant")
        word = FLAPPING if flaps else lane.phase
    css, icon, said = SIGNS[word]
    title = f"{'Now' if follows else f'At {when(at, now)}'}: {said}"
    return {"css": css, "icon": icon, "title": title}


def instant_of(lanes: Lanes, *, follows: bool) -> Instant | None:
    """Sum up all lanes of the page; None without lanes."""
    if not lanes.page:
        return None
    if not lanes.watched:
        says = "Nobody watches now" if follows else "Nobody watched then"
        return Instant("late", "i-blind", 0, 0, 0, says)
    part = lanes.chosen.total > len(lanes.page)
    words = lanes.stands
    if words is None:
        words = Counter(counted_as(lane.kind, stood(lane.standing)) for lane in lanes.page)
    known = sum(words[word] for word in _THERE)
    nobody = known - words["held"]
    if not known:
        return Instant("deleted", "i-minus", 0, 0, words["unknown"], _says_of_none(words))
    trouble = "expired" if nobody > words[FREE] else "vacant"
    css = trouble if nobody else "held"
    unknown = words["unknown"]
    of = " drawn" if part and lanes.stands is None else ""
    return Instant(css, f"st-{css}", nobody, known + unknown, unknown, "", of, part)


def _says_of_none(words: Counter[str]) -> str:
    if words["unknown"]:
        return "Nothing is known of these Leases then"
    return "None of these Leases existed then"
