"""The Nodes page: which nodes stopped, and are they in one zone or pool?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.pages.nodes.node_grid import NodeGrid
from dashboard.parts.formatting import age
from dashboard.parts.frame import responses
from dashboard.parts.kept.node_book import Grouping
from dashboard.parts.node_summary import group_lines, nodes_view
from dashboard.parts.query.url_parameters import BadFilter, number, one_of
from leases.tracking.tracked_lease import Tracked

if TYPE_CHECKING:
    from dashboard.live.publisher import ClusterHub

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
MAX_CELLS = 256
SHARED = {"zone": "nodes zones", "pool": "nodes pools", "none": "nodes"}


@require_safe
@viewer_required
def nodes(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Counts, the worst nodes, groups and orphans; the grid comes over the page's socket."""
    hub = running_board().publisher.hubs[cluster]
    error, by = "", _usual_grouping(hub)
    try:
        by = _grouping(request, hub)
    except BadFilter as refused:
        error = str(refused)
    context: dict[str, Any] = {
        "view": nodes_view(hub, request.cluster.as_of(clock.now())),
        "by": by,
        "groupings": GROUPINGS,
        "lines": group_lines(hub, by),
        "shared": SHARED[by],
        "error": error,
    }
    return render(request, "nodes/index.html", context, status=400 if error else 200)


@require_safe
@viewer_required
def cells(request: ClusterRequest, cluster: str) -> HttpResponse:
    """The heartbeats in some slots of the grid: [namespace/name, last renewal in words] each."""
    hub = running_board().publisher.hubs[cluster]
    try:
        field = hub.grids.get(_grouping(request, hub))
        first = number(request.GET, "first", default=1, largest=10**9) - 1
        generation = number(request.GET, "generation", default=1, largest=10**9)
    except BadFilter as error:
        return responses.json({"error": str(error)}, status=400)
    layout = field.layout if isinstance(field, NodeGrid) else None
    if layout is None or layout.generation != generation:
        return responses.json({"error": "The picture is another by now."}, status=409)
    now = request.cluster.as_of(clock.now())
    keys = layout.keys[first : first + MAX_CELLS]
    said = [[str(key), _renewed(request.cluster.store.get(key), now)] for key in keys]
    return responses.json({"cells": said})


def _renewed(one: Tracked | None, now: datetime) -> str:
    return f"renewed {age((now - one.observed_at).total_seconds())} ago" if one else "gone"


def _grouping(request: ClusterRequest, hub: ClusterHub) -> Grouping:
    """Read `?group=`. Raises BadFilter."""
    usual = _usual_grouping(hub)
    wanted = one_of(request.GET, "group", GROUPINGS, usual)
    return next(by for by in GROUPINGS if by == wanted)


def _usual_grouping(hub: ClusterHub) -> Grouping:
    return "zone" if any(hub.nodes.groups("zone")) else "none"
