"""The audit trail: every write through Leaseboard, newest first; and one of them."""

from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_view
from dashboard.access.roles import READ_TRAIL
from dashboard.board import running_board
from dashboard.lists import responses
from dashboard.lists.url_parameters import (
    BadFilter,
    number,
    one_of,
    page_number,
    quoted,
    read_moment,
    text,
    typed,
    write_moment,
)
from dashboard.parts.audit_line import ACTIONS, OUTCOMES, audit_line
from leases.domain.lease import ObjectName
from leases.history import audit_trail
from leases.history.audit_trail import AuditFilter
from leases.models import Edit

TEXTS = ("cluster", "user", "action", "batch", "q")


def read_audit_filter(query: QueryDict, now: datetime) -> AuditFilter:
    """A time of day means the last one before `until` or now. Raises BadFilter."""
    until = read_moment(query.get("until", ""), "until", now)
    texts = {name: text(query, name) for name in TEXTS}
    return AuditFilter(
        text=texts.pop("q"),
        **texts,
        lease=_lease(text(query, "lease")),
        outcome=one_of(query, "outcome", ("", *OUTCOMES)),
        since=read_moment(query.get("since", ""), "since", until or now),
        until=until,
    )


def filter_texts(wanted: AuditFilter) -> dict[str, str]:
    """Return each parameter of the URL; empty if it is not used."""
    return {
        "q": wanted.text,
        "cluster": wanted.cluster,
        "lease": "" if wanted.lease is None else str(wanted.lease),
        "user": wanted.user,
        "action": wanted.action,
        "outcome": wanted.outcome,
        "batch": wanted.batch,
        "since": write_moment(wanted.since),
        "until": write_moment(wanted.until),
    }


def audit_query(wanted: AuditFilter, **more: str) -> str:
    """Return the query string without empty parameters."""
    return urlencode({k: v for k, v in (filter_texts(wanted) | more).items() if v})


def _lease(value: str) -> ObjectName | None:
    namespace, slash, name = value.partition("/")
    if value and not (namespace and slash and name):
        raise BadFilter(f"lease cannot be {quoted(value)}: write its namespace/name.")
    return ObjectName(namespace, name) if value else None


PER_PAGE = 50
LARGEST_PAGE = 1000
FORMATS = ("", "html", "json", "csv", "ndjson")
EXPORTS = {
    "csv": (audit_trail.as_csv, "text/csv; charset=utf-8"),
    "ndjson": (audit_trail.ndjson, "application/x-ndjson"),
}
TEMPLATES = ("audit/index.html", "audit/_rows.html")
MAX_NUMBER = 2**63 - 1  # of a row, in the database


@require_safe
def audit(request: HttpRequest) -> HttpResponseBase:
    """The rows that match, as a page or JSON; or all of them, streamed as CSV or NDJSON."""
    refusal = _check_access(request)
    return refusal or _list(cast("ClusterRequest", request))


@require_safe
def audit_row(request: HttpRequest, number: int) -> HttpResponseBase:
    """One row, under an address that stays."""
    refusal = _check_access(request)
    if refusal is not None:
        return refusal
    row = Edit.objects.filter(pk=number).first() if number <= MAX_NUMBER else None
    if row is None:
        raise Http404(f"The audit trail has no row {number}.")
    watched = row.cluster in running_board().clusters
    return render(request, "audit/row.html", {"line": audit_line(row), "watched": watched})


def _check_access(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None and not request.user.has_perm(READ_TRAIL):
        raise PermissionDenied(f"{request.user} may not read the audit trail.")
    return refusal


def _list(request: ClusterRequest) -> HttpResponseBase:
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        wanted = read_audit_filter(request.GET, now)
        page, limit = (
            page_number(request.GET),
            number(request.GET, "limit", default=PER_PAGE, largest=LARGEST_PAGE),
        )
    except BadFilter as refused:
        return _refuse(request, refused)
    if answer_as in EXPORTS:
        lines, content_type = EXPORTS[answer_as]
        name = f"audit-{now:%Y%m%dT%H%M%SZ}.{answer_as}"
        return responses.stream(
            request,
            lines(wanted),
            content_type=content_type,
            filename=name,
            permission=READ_TRAIL,
        )
    found = Paginator(audit_trail.matching(wanted), limit).get_page(page)
    if answer_as == "json":
        total = found.paginator.count
        following = responses.next_page_url(request, number=found.number, limit=limit, total=total)
        items = [audit_trail.as_item(row) for row in found.object_list]
        return responses.items(items, total=total, next_url=following, now=now)
    context = _controls(wanted) | {
        "lines": [audit_line(row) for row in found.object_list],
        "page": found,
    }
    return responses.page(request, *TEMPLATES, context, query=audit_query(wanted))


def _controls(wanted: AuditFilter) -> dict[str, Any]:
    path, query = reverse("audit"), audit_query(wanted)
    return {
        "board": filter_texts(wanted),
        "filtered": bool(query),
        "clear_url": path,
        "csv_url": f"{path}?{audit_query(wanted, format='csv')}",
        "ndjson_url": f"{path}?{audit_query(wanted, format='ndjson')}",
        "actions": ACTIONS.items(),
        "outcomes": OUTCOMES.items(),
        "names": sorted(running_board().clusters),
    }


def _refuse(request: ClusterRequest, refused: BadFilter) -> HttpResponseBase:
    if request.GET.get("format") not in (None, "", "html"):
        return responses.json({"error": str(refused)}, status=400)
    names = (*TEXTS, "lease", "outcome", "since", "until")
    kept = {name: typed(request.GET, name) for name in names}
    context = _controls(AuditFilter()) | {
        "board": kept,
        "error": str(refused),
        "bad": refused.parameter,
    }
    return responses.page(request, *TEMPLATES, context, status=400)
