"""The elections that came closest to running out in the last hour."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.pages.incidents.near_misses import (
    near_miss_item,
    near_miss_line,
    near_misses,
    none_near,
)
from dashboard.parts.frame import responses
from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.query.list_filter import ListFilter
from dashboard.parts.query.url_parameters import LARGEST_PAGE, BadFilter, number, page_number

PAGE_SIZE = 50
TEMPLATES = ("incidents/near_misses.html", "incidents/_near_misses.html")


class NearMissFilter(ListFilter, frozen=True, kw_only=True):
    """A page of the list."""

    PARAMETERS = {"limit": "limit", "page": "page"}
    limit: int = PAGE_SIZE


@require_safe
@viewer_required
def near_misses_page(request: ClusterRequest, cluster: str) -> HttpResponse:
    """The closest to running out first, as a page or JSON."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request)
        wanted = NearMissFilter(
            page=page_number(request.GET),
            limit=number(request.GET, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
        )
    except BadFilter as error:
        if request.GET.get("format") == "json":
            return responses.json({"error": str(error)}, status=400)
        context: dict[str, Any] = {"error": str(error), "clear_url": request.path}
        return responses.page(request, *TEMPLATES, context, status=400)
    found = near_misses(request.cluster, now)
    page, rows = wanted.page_of(len(found))
    links = ListLinks(request.path, wanted)
    if answer_as == "json":
        url = responses.next_page_url(request, number=page, limit=wanted.limit, total=len(found))
        items = [near_miss_item(cluster, one) for one in found[rows]]
        return responses.items(
            items, total=len(found), next_url=url, now=now, known=request.cluster
        )
    context = {
        "misses": [near_miss_line(cluster, one, now) for one in found[rows]],
        "pager": links.pager(page, len(found)),
        "json_url": links.json_url(),
        "calm": none_near(request.cluster, now),
    }
    return responses.page(request, *TEMPLATES, context, query=wanted.query())
