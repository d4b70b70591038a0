"""The deletions of many Leases: all of them, and the progress and report of one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST, require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_edit, viewer_required
from dashboard.access.roles import EDIT
from dashboard.board import running_board
from dashboard.parts.formatting import age
from dashboard.parts.frame import responses
from dashboard.parts.lease.row import lease_url
from dashboard.parts.query.url_parameters import BadFilter
from leases.actions.delete_many import records, report
from leases.actions.delete_many.report import DeletionCounts, ReportLine
from leases.domain.lease import ObjectName
from leases.history.read.csv_cells import csv_cell
from leases.models import Deletion
from leases.wire.microtime import format_microtime

LISTED = 50  # deletions on the page of all
SHOWN = 200  # Leases in a report; the CSV has all
COLUMNS = ("namespace", "name", "uid", "outcome", "detail", "at")


@require_safe
@viewer_required
def deletions(request: ClusterRequest, cluster: str) -> HttpResponse:
    """The newest deletions of the cluster."""
    check_edit(request.user)
    rows = Deletion.objects.filter(cluster=cluster).defer("chosen").order_by("-pk")[:LISTED]
    found = [{"row": row, "counts": report.counts_of(row)} for row in rows]
    return render(request, "deletions/index.html", {"deletions": found})


@require_safe
@viewer_required
def deletion(request: ClusterRequest, cluster: str, number: int) -> HttpResponseBase:
    """Its progress, then its report; `?format=csv` is the whole report."""
    check_edit(request.user)
    row = _find(cluster, number)
    try:
        answer_as = responses.read_format(request, ("", "html", "csv"))
    except BadFilter as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    if answer_as == "csv":
        filename = f"{cluster}-deletion-{row.pk}.csv"
        return responses.stream(
            request,
            _csv(row),
            content_type="text/csv; charset=utf-8",
            filename=filename,
            permission=EDIT,
        )
    partial = request.htmx and not request.htmx.history_restore_request
    template = "deletions/_progress.html" if partial else "deletions/one.html"
    response = render(request, template, _presented(row, clock.now()))
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_POST
@viewer_required
def stop_deletion(request: ClusterRequest, cluster: str, number: int) -> HttpResponseBase:
    """Stop it. What is deleted stays deleted."""
    check_edit(request.user)
    row = _find(cluster, number)
    if not records.ask_to_stop(row.pk):
        messages.info(request, "It had ended before. Nothing was stopped.")
    running_board().deletions[cluster].wake()
    return redirect("deletion", cluster, row.pk)


def _find(cluster: str, number: int) -> Deletion:
    row = Deletion.objects.filter(cluster=cluster, pk=number).first()
    if row is None:
        raise Http404(f"There is no deletion {number} in {cluster}.")
    return row


def _presented(row: Deletion, now: datetime) -> dict[str, Any]:
    counts = report.counts_of(row)
    lines = report.not_deleted(row, SHOWN)
    ended = row.ended_at or now
    took = (ended - row.made_at).total_seconds()
    active = row.state in Deletion.ACTIVE
    return {
        "row": row,
        "counts": counts,
        "active": active,
        "stopping": active and row.stop_asked,
        "silent": active and now - row.beat_at > records.SILENT,
        "share": 100 * counts.tried // (counts.total or 1),
        "took": age(took),
        "left": _left(counts, took) if active else "",
        "lines": [
            {"line": line, "url": lease_url(row.cluster, ObjectName(line.namespace, line.name))}
            for line in lines
        ],
        "more": max(0, counts.tried - counts.deleted - len(lines)),
        "try_again": counts.refused + counts.unknown + counts.not_deleted + counts.not_tried,
    }


def _left(counts: DeletionCounts, took: float) -> str:
    """`120 per second, about 4.2 s left`."""
    if not counts.tried or took <= 0:
        return ""
    rate = counts.tried / took
    return f"{rate:,.0f} per second, about {age(counts.not_tried / rate)} left"


def _csv(row: Deletion) -> Iterator[str]:
    yield ",".join(COLUMNS) + "\r\n"
    for line in report.every(row):
        yield ",".join(map(csv_cell, _cells(line))) + "\r\n"


def _cells(line: ReportLine) -> tuple[str | None, ...]:
    at = format_microtime(line.at) if line.at else None
    return (line.namespace, line.name, line.uid, line.fate, line.detail, at)
