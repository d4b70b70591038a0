"""Which nodes stopped, and are they together?"""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard import runtime
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.lease_filter import BadFilter, number
from dashboard.live.field import Field
from dashboard.live.publisher import Channel
from dashboard.node_book import Grouping
from dashboard.presenters.nodes import group_lines, nodes_view
from dashboard.presenters.words import age
from dashboard.views import answers
from leases.tracking.tracked import Tracked

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
MOST_CELLS = 256
SHARED = {"zone": "nodes zones", "pool": "nodes pools", "none": "nodes"}


@require_GET
@viewer_required
def nodes(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Counts, the worst, groups and orphans; the picture itself comes over the page's socket."""
    channel = runtime.get().publisher.channels[cluster]
    by = _grouping(request.GET.get("group", ""), channel)
    context: dict[str, Any] = {
        "view": nodes_view(channel, timezone.now()),
        "by": by,
        "groupings": GROUPINGS,
        "lines": group_lines(channel, by),
        "shared": SHARED[by],
    }
    return render(request, "nodes/index.html", context)


@require_GET
@viewer_required
def cells(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Who stands in some slots of the picture: [namespace/name, last renewal in words] each."""
    channel = runtime.get().publisher.channels[cluster]
    field = channel.fields.get(_grouping(request.GET.get("group", ""), channel))
    try:
        first = number(request.GET, "first", default=1, largest=10**9) - 1
        generation = number(request.GET, "generation", default=1, largest=10**9)
    except BadFilter as error:
        return answers.json({"error": str(error)}, status=400)
    layout = field.layout if isinstance(field, Field) else None
    if layout is None or layout.generation != generation:
        return answers.json({"error": "The picture is another by now."}, status=409)
    now = timezone.now()
    keys = layout.keys[first : first + MOST_CELLS]
    said = [[str(key), _renewed(request.cluster.store.get(key), now)] for key in keys]
    return answers.json({"cells": said})


def _renewed(one: Tracked | None, now: datetime) -> str:
    return f"renewed {age((now - one.observed_at).total_seconds())} ago" if one else "gone"


def _grouping(wanted: str, channel: Channel) -> Grouping:
    """What the URL asks for; else by zone where zones are known."""
    for by in GROUPINGS:
        if by == wanted:
            return by
    return "zone" if any(channel.nodes.groups("zone")) else "none"
