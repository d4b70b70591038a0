"""Is anything wrong, and what just happened?"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.pages.overview.summary import overview as overview_view
from dashboard.parts.change_sentence import change_line
from dashboard.parts.query.recent_changes import recent_changes

FEED = 12


@require_safe
@viewer_required
def overview(request: ClusterRequest, cluster: str) -> HttpResponse:
    """Key figures, attention, elections, two pictures and the newest changes of one cluster."""
    now = clock.now()
    as_of = request.cluster.as_of(now)
    hub = running_board().publisher.hubs[cluster]
    feed_seq, newest = recent_changes(cluster, FEED)
    context: dict[str, Any] = {
        "view": overview_view(hub, as_of),
        "chart": hub.ages.of(hub.store, as_of),
        "changes": [change_line(change, now) for change in newest],
        "feed_seq": feed_seq,
    }
    return render(request, "overview/index.html", context)
