"""The timeline: who held what over time, and at one instant."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.drawing_gate import drawing_gate
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.charts.lanes import fog
from dashboard.charts.time_axis import Scale, percent, ticks
from dashboard.lists import responses
from dashboard.lists.controls import Chip, ListLinks
from dashboard.lists.url_parameters import BadFilter, typed, write_moment
from dashboard.pages.timeline import drawn_lanes
from dashboard.pages.timeline.lane_query import USUAL_KINDS, LanePage, Lanes, kinds_of, read_lanes
from dashboard.parts import time_range
from dashboard.parts.changes_strip import OverviewStrip, overview_of, strip_view
from dashboard.parts.formatting import age, capitalized, span_of, when
from dashboard.parts.incident_line import bands_by_lease, incident_summary, incidents_between
from dashboard.parts.lease_controls import KIND_LABELS, as_far_as
from dashboard.parts.names import cluster_path, shown_holder
from dashboard.parts.page_links import HistoryState, ranking_url, shown_time
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.watched_times import UnwatchedTime
from leases.history.change_counts import density
from leases.history.indexed_search import HistoryFilter
from leases.history.watched_spans import unwatched_times, watched_since

Counts = dict[Kind, dict[Phase, int]]


def timeline_links(
    path: str,
    wanted: time_range.TimelineFilter,
    shown: time_range.TimeRange,
    *,
    now: datetime,
    counts: Counts,
    known: bool,
    chosen: LanePage,
) -> dict[str, Any]:
    """Make all links; `path` is the page's own. Without `known`, no list was read yet."""
    links = ListLinks(path, wanted)
    sorts = {
        time_range.WORST_FIRST: "Worst first",
        time_range.BY_CHANGES: "Most changes",
        time_range.BY_NAME: "By name",
    }
    views = {time_range.LANES: "Lanes", time_range.TABLE: "Table"}
    return {
        **time_range.stretch_links(links, wanted, shown, now=now),
        "kinds": as_far_as(_kinds(links, wanted, counts), known=known),
        "any_holder": links.url(holder=""),
        "sorts": [links.chip(label, "sort", value) for value, label in sorts.items()],
        "views": [links.chip(label, "view", value) for value, label in views.items()],
        "now": links.url(since=None, until=None, at=None),
        "pager": links.pager(chosen.number, chosen.total),
        "clear": path,
        "json": links.url_as("json", page=wanted.page),
    }


def _kinds(links: ListLinks, wanted: time_range.TimelineFilter, counts: Counts) -> list[Chip]:
    """The kinds that have Leases. Elections are the default, unless a holder is wanted."""
    on, usual = kinds_of(wanted), kinds_of(wanted.replace(kinds=()))
    numbers = {kind: sum(counts.get(kind, {}).values()) for kind in Kind}
    return [
        Chip(
            kind.value,
            KIND_LABELS[kind],
            links.url(kinds=() if usual == (kind,) else (kind,)),
            kind in on,
            numbers[kind],
        )
        for kind in Kind
        if numbers[kind] or kind in (wanted.kinds or USUAL_KINDS)
    ]


def stretch_view(
    shown: time_range.TimeRange, *, now: datetime, around: Scale, blind: Sequence[UnwatchedTime]
) -> dict[str, Any]:
    """The brush moves in `around`; `blind` was not watched."""
    scale = Scale(shown.since, shown.until)
    return {
        "shown": shown,
        "at_x": percent(scale.x(shown.at)),
        "at_clock": when(shown.at, now),
        "at_text": "" if shown.follows else write_moment(shown.at),
        "at_input": _input(shown, now),
        "from_to": _from_to(shown, now),
        "frame_x": percent(around.x(shown.since)),
        "frame_width": percent(around.x(shown.until) - around.x(shown.since)),
        "ticks": ticks(scale),
        "blind": fog(((one.since, one.until) for one in blind), scale),
        "blind_for": _blind_for(blind),
        "unseen": unseen_of(blind, shown),
    }


def timeline_board(wanted: time_range.TimelineFilter, chosen: LanePage) -> dict[str, Any]:
    """The words and numbers beside the lanes."""
    kept = ("range", "from", "to", "holder", "kind", "sort", "view")
    return {
        "text": wanted.text,
        "holder": shown_holder(wanted.holder),
        "kept": [pair for pair in wanted.pairs() if pair[0] in kept],
        "total": chosen.total,
        "changed": chosen.changed,
        "noun": _noun(wanted),
        "says": _says(wanted),
    }


def unseen_of(blind: Sequence[UnwatchedTime], shown: time_range.TimeRange) -> str:
    if not blind:
        return ""
    whole = any(one.covers(shown.since, shown.until) for one in blind)
    return "whole" if whole else "part"


def _blind_for(blind: Sequence[UnwatchedTime]) -> str:
    total = sum(one.seconds for one in blind)
    return age(total) if total else ""


def _input(shown: time_range.TimeRange, now: datetime) -> str:
    """The playhead as a person would type it; "" while it follows the clock."""
    if shown.follows:
        return ""
    at = shown.at
    today = at.date() == now.date()
    text = f"{at:%H:%M:%S}" if today else f"{at:%Y-%m-%d %H:%M:%S}"
    return text if at.microsecond == 0 else f"{text}.{at:%f}".rstrip("0")


def _from_to(shown: time_range.TimeRange, now: datetime) -> str:
    length = span_of(shown.length)
    if shown.is_young:
        return f"since {when(shown.since, now)}, when watching began"
    if shown.live:
        return f"last {length}"
    return f"{when(shown.since, now)} to {when(shown.until, now)} ({length})"


def _noun(wanted: time_range.TimelineFilter) -> str:
    labels = [KIND_LABELS[kind].lower() for kind in kinds_of(wanted)]
    return "Leases" if len(labels) > 1 or wanted.kinds == (Kind.UNKNOWN,) else labels[0]


def _says(wanted: time_range.TimelineFilter) -> str:
    """The filter in words."""
    said = f"kind is {' or '.join(kind.value for kind in kinds_of(wanted))}"
    said += f", name contains “{wanted.text}”" if wanted.text else ""
    said += f", holder is {shown_holder(wanted.holder)}" if wanted.holder else ""
    return capitalized(said)


def history_links(
    cluster: str, wanted: time_range.TimelineFilter, shown: time_range.TimeRange
) -> dict[str, str]:
    """History as a page and as a file, and the ranking of the Leases."""
    changes = HistoryState(
        kind=() if wanted.holder else tuple(kind.value for kind in kinds_of(wanted)),
        text=wanted.text or wanted.holder,
        since=None if shown.live else shown.since,
        until=None if shown.live else shown.until,
        range=wanted.range if shown.live else "",
    )
    links = ListLinks(cluster_path("history", cluster), changes)
    return {
        "page": links.url(),
        "csv": links.url_as("csv"),
        "ranking": ranking_url(cluster, shown_time(shown, wanted.range, None), wanted.kinds),
    }


TEMPLATES = ("timeline/index.html", "timeline/_board.html")
NO_LANES = Lanes([], LanePage([], 1, 0, 0), (), watched=True)


@require_safe
@viewer_required
def timeline(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Lanes of terms and gaps, as a page, as the part that a choice changes, or as JSON."""
    with drawing_gate.large():
        return _answer(request, cluster, clock.now())


def _answer(request: ClusterRequest, cluster: str, now: datetime) -> HttpResponse:
    try:
        answer_as = responses.read_format(request)
        watched = None if answer_as == "json" else watched_since(cluster)
        wanted = time_range.TimelineFilter.read(
            request.GET, now, range=time_range.range_for(watched, now)
        )
        shown = time_range.window(wanted, now, watched=watched)
    except BadFilter as error:
        return _refuse(request, error, now)
    if answer_as == "json":
        return _json(request, wanted, shown, now)
    feed_seq = running_board().feeds[cluster].settled_seq()
    end, scale = _end(request, shown, now), Scale(shown.since, shown.until)
    overview = overview_of(shown, now, watched=watched)
    strip = _strip(request, wanted, overview, now)
    incidents = incidents_between(cluster, shown.since, shown.until)
    summary = incident_summary(cluster, incidents, scale, end or now)
    lanes = read_lanes(request.cluster.store, wanted, shown, now)
    context = _around(request, wanted, shown, lanes, now, overview.scale)
    context |= {"feed_seq": feed_seq, "strip": strip}
    context["strip_ends_now"] = overview.scale.until >= now
    context["instant"] = drawn_lanes.instant_of(lanes, follows=shown.follows)
    if summary["every"]:
        context["incidents"] = summary
    zoom = time_range.zoom_to(ListLinks(request.path, wanted), shown, now=now)
    time = shown_time(shown, wanted.range, None if shown.follows else shown.at)
    how: dict[str, Any] = {"now": now, "time": time, "zoom": zoom, "end": end}
    if wanted.view == time_range.TABLE:
        context["lanes"] = lanes.page
        context["rows"] = drawn_lanes.table_rows(cluster, lanes, scale, **how)
    else:
        unseen = context["stretch"]["unseen"]
        keys = [lane.key for lane in lanes.page]
        bands = bands_by_lease(cluster, incidents, keys, scale, end or now)
        context["lanes"] = drawn_lanes.lane_views(
            cluster, lanes, shown, unseen=unseen, bands=bands, **how
        )
        context["holders"] = drawn_lanes.holders_of(context["lanes"])
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def _end(request: ClusterRequest, shown: time_range.TimeRange, now: datetime) -> datetime | None:
    """The last known moment of the stretch; None means now."""
    as_of = request.cluster.as_of(now)
    return None if shown.live and as_of == now else min(shown.until, as_of)


def _around(
    request: ClusterRequest,
    wanted: time_range.TimelineFilter,
    shown: time_range.TimeRange,
    lanes: Lanes,
    now: datetime,
    around: Scale,
) -> dict[str, Any]:
    links = timeline_links(
        request.path,
        wanted,
        shown,
        now=now,
        counts=request.cluster.store.counts(),
        known=request.cluster.store.known,
        chosen=lanes.chosen,
    )
    return {
        "board": timeline_board(wanted, lanes.chosen),
        "stretch": stretch_view(shown, now=now, around=around, blind=lanes.blind),
        "links": links,
        "changes": history_links(request.cluster.name, wanted, shown),
        "as_table": wanted.view == time_range.TABLE,
    }


def _strip(
    request: ClusterRequest,
    wanted: time_range.TimelineFilter,
    overview: OverviewStrip,
    now: datetime,
) -> dict[str, Any]:
    mine = HistoryFilter(kind=tuple(kind.value for kind in kinds_of(wanted)))
    counts = density(
        request.cluster.name, mine, overview.since, overview.step, overview.steps, now=now
    )

    def url(since: datetime, until: datetime) -> str:
        return f"{request.path}?{wanted.replace(since=since, until=until, at=None, page=1).query()}"

    around = overview.scale
    blind = unwatched_times(request.cluster.name, since=around.since, until=around.until, now=now)
    # If watching began inside the first step, that step is no time to warn of.
    shown = [
        one for one in blind if one.ended is not None or one.until - one.since >= overview.step
    ]
    return strip_view(counts, overview.since, overview.step, now=now, url=url, blind=shown)


def _usable(
    request: ClusterRequest, now: datetime
) -> tuple[time_range.TimelineFilter, time_range.TimeRange]:
    """What was asked, without the parameters that cannot be used."""
    asked, watched = request.GET.copy(), watched_since(request.cluster.name)
    usual = time_range.range_for(watched, now)
    while True:
        try:
            wanted = time_range.TimelineFilter.read(asked, now, range=usual)
            return wanted, time_range.window(wanted, now, watched=watched)
        except BadFilter as error:
            pair = ("from", "to")
            bad = pair if error.parameter in pair else (error.parameter,)
            if not [name for name in bad if asked.pop(name, None)]:
                asked.clear()


def _refuse(request: ClusterRequest, refused: BadFilter, now: datetime) -> HttpResponse:
    if request.GET.get("format") == "json":
        return responses.json({"error": str(refused)}, status=400)
    wanted, shown = _usable(request, now)
    context = _around(request, wanted, shown, NO_LANES, now, overview_of(shown, now).scale)
    context["board"] |= {"text": typed(request.GET, "q")}
    context["stretch"] |= {"at_input": typed(request.GET, "at")}
    context |= {"error": refused.said, "bad": refused.parameter}
    return responses.page(request, *TEMPLATES, context, status=400)


def _json(
    request: ClusterRequest,
    wanted: time_range.TimelineFilter,
    shown: time_range.TimeRange,
    now: datetime,
) -> HttpResponse:
    lanes = read_lanes(request.cluster.store, wanted, shown, now)
    next_url = None
    if lanes.chosen.number * wanted.limit < lanes.chosen.total:
        path = ListLinks(request.path, wanted).url_as("json", page=lanes.chosen.number + 1)
        next_url = request.build_absolute_uri(path)
    cluster = request.cluster.name
    return responses.items(
        [drawn_lanes.lane_item(cluster, lane, shown, lanes.blind) for lane in lanes.page],
        total=lanes.chosen.total,
        next_url=next_url,
        now=now,
        told=responses.unless_live(request.cluster, now) if shown.follows else None,
    )
