"""The list of holders, and what goes down with each: filter, sort, page."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.charts.time_scale import Scale
from dashboard.pages.holders.holder_json import holder_item
from dashboard.pages.holders.holder_row import drawn_leases, holder_rows
from dashboard.pages.holders.list_controls import holder_board
from dashboard.parts.frame import responses
from dashboard.parts.kept.holdings import FoundHolders
from dashboard.parts.query.holder_filter import HolderFilter, read_holder_filter
from dashboard.parts.query.recent_changes import feed_reached
from dashboard.parts.query.time_range import RANGES
from dashboard.parts.query.url_parameters import BadFilter, typed
from leases.history.read.timeline_lanes import lanes

TEMPLATES = ("holders/index.html", "holders/_board.html")


@require_safe
@viewer_required
def holders(request: ClusterRequest, cluster: str) -> HttpResponse:
    """The list as a page, as the part that a filter changes, or as JSON."""
    now = request.cluster.as_of(clock.now())
    try:
        answer_as = responses.read_format(request)
        wanted = read_holder_filter(request.GET)
    except BadFilter as error:
        return _refuse(request, str(error))
    found = request.cluster.holdings.find(wanted, now)
    if answer_as == "json":
        return _json(request, cluster, wanted, found)
    scale = Scale(now - RANGES[wanted.range], now)
    keys = drawn_leases(found.page)
    known = lanes(cluster, keys, since=scale.since, until=scale.until, counted=False)
    rows = holder_rows(
        cluster,
        found.page,
        {lane.key: lane.life for lane in known},
        wanted=wanted,
        held=found.figures.held,
        scale=scale,
        now=now,
    )
    context: dict[str, Any] = {
        "board": holder_board(request.path, wanted, found, now, known=request.cluster.store.known),
        "rows": rows,
        "feed_seq": feed_reached(cluster),
    }
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def _json(
    request: ClusterRequest, cluster: str, wanted: HolderFilter, found: FoundHolders
) -> HttpResponse:
    return responses.items(
        [holder_item(cluster, holder, held=found.figures.held) for holder in found.page],
        total=found.total,
        next_url=responses.next_page_url(
            request, number=found.number, limit=wanted.limit, total=found.total
        ),
        now=clock.now(),
    )


def _refuse(request: ClusterRequest, error: str) -> HttpResponse:
    if request.GET.get("format") not in (None, "", "html"):
        return responses.json({"error": error}, status=400)
    now, everything = request.cluster.as_of(clock.now()), HolderFilter()
    found = request.cluster.holdings.find(everything, now)
    known = request.cluster.store.known
    usual = holder_board(request.path, everything, found, now, known=known)
    board = usual | {"text": typed(request.GET, "q")}
    context = {"board": board, "error": error}
    return responses.page(request, *TEMPLATES, context, status=400)
