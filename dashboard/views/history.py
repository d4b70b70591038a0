"""Every change: filter, page back in time, export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard.access import ClusterRequest, viewer_required
from dashboard.history_filter import read_history_filter
from dashboard.lease_filter import LARGEST_PAGE, PAGE_SIZE, BadFilter, number
from dashboard.presenters.change import change_line
from dashboard.presenters.history_board import history_board, history_query
from dashboard.views import answers
from dashboard.views.leases import read_format
from leases.history import export, queries
from leases.history.queries import BadCursor
from leases.history.streams import HistoryFilter

FORMATS = ("", "html", "json", "csv", "ndjson")
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}


@require_GET
@viewer_required
def history(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """The changes that match, newest first, as a page, as JSON, or streamed as CSV or NDJSON."""
    before = request.GET.get("before") or None
    try:
        answer_as = read_format(request, FORMATS)
        wanted = read_history_filter(request.GET)
        limit = number(request.GET, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE)
        if answer_as in CONTENT_TYPES:
            return _stream(cluster, wanted, answer_as)
        found = queries.find(cluster, wanted, before=before, limit=limit)
    except (BadFilter, BadCursor) as error:
        return _refuse(request, str(error))
    now = timezone.now()
    if answer_as == "json":
        query = history_query(wanted, format="json", limit=str(limit), before=found.older or "")
        url = request.build_absolute_uri(f"{request.path}?{query}") if found.older else None
        items = [export.as_item(change) for change in found.changes]
        return answers.items(items, total=found.total, next_url=url, now=now)
    context: dict[str, Any] = {
        "board": history_board(
            request.path, wanted, total=found.total, older=found.older, before=before
        ),
        "lines": [change_line(change, now) for change in found.changes],
    }
    query = history_query(wanted, **({"before": before} if before else {}))
    return answers.page(request, "history/index.html", "history/_rows.html", context, query=query)


def _refuse(request: ClusterRequest, error: str) -> HttpResponse:
    if request.GET.get("format") not in (None, "", "html"):
        return answers.json({"error": error}, status=400)
    board = history_board(request.path, HistoryFilter(), total=0, older=None, before=None)
    context = {"board": board, "error": error}
    return answers.page(request, "history/index.html", "history/_rows.html", context, status=400)


def _stream(cluster: str, wanted: HistoryFilter, answer_as: str) -> StreamingHttpResponse:
    """Oldest first, as `export_history` prints it."""
    changes = export.changes(cluster, wanted)
    lines: Iterator[str] = export.as_csv(changes) if answer_as == "csv" else export.ndjson(changes)
    response = StreamingHttpResponse(lines, content_type=CONTENT_TYPES[answer_as])
    response["Content-Disposition"] = f'attachment; filename="{cluster}-history.{answer_as}"'
    return response
