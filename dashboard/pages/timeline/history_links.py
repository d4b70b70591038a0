"""The links from the timeline to the changes of the same stretch and Leases."""

from __future__ import annotations

from django.urls import reverse

from dashboard.pages.timeline.lane_order import kinds_of
from dashboard.parts.lease.page_links import ranking_url, shown_time
from dashboard.parts.query.history_url import history_query
from dashboard.parts.query.time_range import TimelineFilter, TimeRange
from leases.history.read.indexed_search import HistoryFilter


def history_links(cluster: str, wanted: TimelineFilter, shown: TimeRange) -> dict[str, str]:
    """History as a page and as a file, and the ranking of the Leases."""
    changes = HistoryFilter(
        kind=() if wanted.holder else tuple(kind.value for kind in kinds_of(wanted)),
        text=wanted.text or wanted.holder,
        since=None if shown.live else shown.since,
        until=None if shown.live else shown.until,
    )
    path = reverse("history", args=[cluster])
    time = {"range": wanted.range} if shown.live else {}
    return {
        "page": f"{path}?{history_query(changes, **time)}",
        "csv": f"{path}?{history_query(changes, **time, format='csv')}",
        "ranking": ranking_url(cluster, shown_time(shown, wanted.range, None), wanted.kinds),
    }
