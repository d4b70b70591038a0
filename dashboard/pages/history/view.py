"""The History page: filter changes, page back in time, export."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.pages.history.export_name import export_name
from dashboard.pages.history.filter import HistoryView, read_history_view
from dashboard.pages.history.list_controls import chosen, history_board, view_query
from dashboard.pages.history.timeline_link import ranking_link, timeline_link
from dashboard.parts.changes_strip import strip_view
from dashboard.parts.frame import responses
from dashboard.parts.query.lease_filter import PAGE_SIZE
from dashboard.parts.query.recent_changes import with_known_causes, with_unwritten
from dashboard.parts.query.strip_steps import strip_of
from dashboard.parts.query.time_range import MAX_RANGE
from dashboard.parts.query.url_parameters import (
    LARGEST_PAGE,
    BadFilter,
    number,
    typed,
)
from dashboard.parts.signed_changes import signed_lines
from leases.domain.cause.incident import Cause
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.history.read import export, find_changes
from leases.history.read.change_density import density
from leases.history.read.find_changes import BadCursor
from leases.history.read.indexed_search import HistoryFilter
from leases.history.write.watched_spans import unwatched_times

FORMATS = ("", "html", "json", "csv", "ndjson")
USUAL_STRIP = timedelta(days=1)
MAX_NAMESPACES = 500  # offered; any other can be typed
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}

TEMPLATES = ("history/index.html", "history/_rows.html")
TYPED = ("range", "namespace", "lease", "holder", "q", "inferred", "since", "until", "view")


@require_safe
@viewer_required
def history(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """The matching changes, newest first, as a page or JSON; or streamed as CSV or NDJSON."""
    before = request.GET.get("before") or None
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        view = read_history_view(request.GET, now)
        limit = number(request.GET, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE)
        if answer_as in CONTENT_TYPES:
            return _stream(request, view.as_of(now), answer_as, now)
        found = find_changes.find(cluster, view.as_of(now), before=before, limit=limit)
    except (BadFilter, BadCursor) as error:
        return _refuse(request, error)
    if answer_as == "json":
        query = view_query(view, format="json", limit=str(limit), before=found.older or "")
        url = request.build_absolute_uri(f"{request.path}?{query}") if found.older else None
        items = [export.as_item(change) for change in found.changes]
        return responses.items(items, total=found.total, next_url=url, now=now)
    board = history_board(
        request.path,
        request.GET,
        view,
        total=found.total,
        exact=found.exact,
        older=found.older,
        before=before,
    )
    feed_seq, changes = with_unwritten(cluster, found.changes)
    shown = changes if board["newest"] and board["plain"] else found.changes
    context: dict[str, Any] = {
        "board": board,
        "lines": signed_lines(with_known_causes(cluster, shown), now, request.user),
        "strip": _strip(request, view, now),
        "timeline_url": timeline_link(cluster, view, now),
        "ranking_url": ranking_link(cluster, view, now),
        "namespaces": request.cluster.store.namespaces()[:MAX_NAMESPACES],
        "limit": limit,
        "feed_seq": feed_seq,
    }
    return responses.page(request, *TEMPLATES, context, query=view_query(view, before=before or ""))


def _strip(request: ClusterRequest, view: HistoryView, now: datetime) -> dict[str, Any]:
    """Count the matching changes over the chosen stretch, or over the last day."""
    wanted = view.as_of(now)
    until = min(now, wanted.until or now)
    since = max(wanted.since or until - USUAL_STRIP, until - MAX_RANGE)
    steps = strip_of(min(since, until), until)
    cluster = request.cluster.name
    counts = density(cluster, wanted, steps.since, steps.step, steps.steps, now=now)

    def url(start: datetime, end: datetime) -> str:
        inside = msgspec.structs.replace(view.wanted, since=start, until=end)
        narrower = msgspec.structs.replace(view, wanted=inside, range="")
        return f"{request.path}?{view_query(narrower)}"

    anything = msgspec.structs.replace(wanted, since=None, until=None) == HistoryFilter()
    what = "change" if anything else "matching change"
    return strip_view(
        counts,
        steps.since,
        steps.step,
        now=now,
        url=url,
        length=until - since,
        what=what,
        blind=unwatched_times(cluster, since=since, until=until, now=now),
    )


def _refuse(request: ClusterRequest, refused: BadFilter | BadCursor) -> HttpResponse:
    error, query = str(refused), request.GET
    answer_as = query.get("format") or "html"
    # A person who asks for a file from a form gets the form back.
    by_form = answer_as in CONTENT_TYPES and "text/html" in request.headers.get("Accept", "")
    if answer_as != "html" and not by_form:
        return responses.json({"error": error}, status=400)
    everything = HistoryView(wanted=HistoryFilter())
    usual = history_board(
        request.path, query, everything, total=0, exact=True, older=None, before=None
    )
    kept: dict[str, Any] = {name: typed(query, name) for name in TYPED}
    for name, allowed in (("change", ChangeType), ("kind", Kind), ("cause", Cause)):
        kept[name] = tuple(one for one in allowed if one in query.getlist(name))
    kept |= chosen(kept["change"], kept["kind"], kept["cause"])
    context = {
        "board": usual | kept,
        "namespaces": request.cluster.store.namespaces()[:MAX_NAMESPACES],
        "error": error,
        "bad": getattr(refused, "parameter", ""),
    }
    return responses.page(request, *TEMPLATES, context, status=400)


def _stream(
    request: ClusterRequest, wanted: HistoryFilter, answer_as: str, now: datetime
) -> StreamingHttpResponse:
    """Stream the changes, oldest first, as `export_history` prints them."""
    cluster = request.cluster.name
    changes = export.changes(cluster, wanted)
    lines = export.as_csv(changes) if answer_as == "csv" else export.ndjson(changes)
    return responses.stream(
        request,
        lines,
        content_type=CONTENT_TYPES[answer_as],
        filename=f"{export_name(cluster, wanted, now)}.{answer_as}",
    )
