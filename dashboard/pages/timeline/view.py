"""The timeline: who held what over time, and at one instant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.charts.time_scale import Scale
from dashboard.pages.timeline.drawn_lanes import holders_of, lane_views
from dashboard.pages.timeline.history_links import history_links
from dashboard.pages.timeline.lane_json import lane_item
from dashboard.pages.timeline.lane_order import LanePage, kinds_of
from dashboard.pages.timeline.lane_query import Lanes, read_lanes
from dashboard.pages.timeline.navigation_links import timeline_links
from dashboard.pages.timeline.stretch import stretch_view, timeline_board
from dashboard.pages.timeline.table import table_rows
from dashboard.parts.changes_strip import strip_view
from dashboard.parts.frame import responses
from dashboard.parts.frame.as_of_words import instant_of
from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.frame.stretch_links import zoom_to
from dashboard.parts.lease.page_links import shown_time
from dashboard.parts.query.incidents_between import (
    bands_by_lease,
    incident_summary,
    incidents_between,
)
from dashboard.parts.query.recent_changes import settled_seq
from dashboard.parts.query.strip_steps import OverviewStrip, overview_of
from dashboard.parts.query.time_range import (
    TABLE,
    TimelineFilter,
    TimeRange,
    range_for,
    read_timeline_filter,
    window,
)
from dashboard.parts.query.url_parameters import BadFilter, typed
from leases.history.read.change_density import density
from leases.history.read.indexed_search import HistoryFilter
from leases.history.write.watched_spans import unwatched_times, watched_since

TEMPLATES = ("timeline/index.html", "timeline/_board.html")
NO_LANES = Lanes([], LanePage([], 1, 0, 0), (), watched=True)


@require_safe
@viewer_required
def timeline(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Lanes of terms and gaps, as a page, as the part that a choice changes, or as JSON."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request)
        watched = None if answer_as == "json" else watched_since(cluster)
        wanted = read_timeline_filter(request.GET, now, usual=range_for(watched, now))
        shown = window(wanted, now, watched=watched)
    except BadFilter as error:
        return _refuse(request, error, now)
    feed_seq = settled_seq(cluster, now)  # before reading: a repeat is harmless, a gap is not
    lanes = read_lanes(request.cluster.store, wanted, shown, now)
    if answer_as == "json":
        return _json(request, wanted, shown, lanes, now)
    overview = overview_of(shown, now, watched=watched)
    context = _around(request, wanted, shown, lanes, now, overview.scale)
    context["feed_seq"] = feed_seq
    end = _end(request, shown, now)
    context["instant"] = instant_of(lanes, follows=shown.follows)
    context["strip"] = _strip(request, wanted, overview, now)
    context["strip_ends_now"] = overview.scale.until >= now
    scale = Scale(shown.since, shown.until)
    incidents = incidents_between(cluster, shown.since, shown.until)
    if incidents:
        context["incidents"] = incident_summary(cluster, incidents, scale, end or now)
    zoom = zoom_to(ListLinks(request.path, wanted), shown, now=now)
    time = shown_time(shown, wanted.range, None if shown.follows else shown.at)
    how: dict[str, Any] = {"now": now, "time": time, "zoom": zoom, "end": end}
    if wanted.view == TABLE:
        context["lanes"] = lanes.page
        context["rows"] = table_rows(cluster, lanes, scale, **how)
    else:
        unseen = context["stretch"]["unseen"]
        keys = [lane.key for lane in lanes.page]
        bands = bands_by_lease(cluster, incidents, keys, scale, end or now)
        context["lanes"] = lane_views(cluster, lanes, shown, unseen=unseen, bands=bands, **how)
        context["holders"] = holders_of(context["lanes"])
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def _end(request: ClusterRequest, shown: TimeRange, now: datetime) -> datetime | None:
    """The last known moment of the stretch; None means now."""
    as_of = request.cluster.as_of(now)
    return None if shown.live and as_of == now else min(shown.until, as_of)


def _around(
    request: ClusterRequest,
    wanted: TimelineFilter,
    shown: TimeRange,
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
        chosen=lanes.chosen,
    )
    return {
        "board": timeline_board(wanted, lanes.chosen),
        "stretch": stretch_view(shown, now=now, around=around, blind=lanes.blind),
        "links": links,
        "changes": history_links(request.cluster.name, wanted, shown),
        "as_table": wanted.view == TABLE,
    }


def _strip(
    request: ClusterRequest, wanted: TimelineFilter, overview: OverviewStrip, now: datetime
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


def _refuse(request: ClusterRequest, refused: BadFilter, now: datetime) -> HttpResponse:
    error = str(refused)
    if request.GET.get("format") == "json":
        return responses.json({"error": error}, status=400)
    usual = TimelineFilter()
    shown = window(usual, now)
    context = _around(request, usual, shown, NO_LANES, now, overview_of(shown, now).scale)
    context["board"] |= {"text": typed(request.GET, "q")}
    context["stretch"] |= {"at_input": typed(request.GET, "at")}
    context |= {"error": error, "bad": refused.parameter}
    return responses.page(request, *TEMPLATES, context, status=400)


def _json(
    request: ClusterRequest, wanted: TimelineFilter, shown: TimeRange, lanes: Lanes, now: datetime
) -> HttpResponse:
    next_url = None
    if lanes.chosen.number * wanted.limit < lanes.chosen.total:
        path = ListLinks(request.path, wanted).json_url(page=lanes.chosen.number + 1)
        next_url = request.build_absolute_uri(path)
    cluster = request.cluster.name
    return responses.items(
        [lane_item(cluster, lane, shown, lanes.blind) for lane in lanes.page],
        total=lanes.chosen.total,
        next_url=next_url,
        now=now,
    )
