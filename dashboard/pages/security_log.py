"""The security log, newest first."""

from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_view
from dashboard.access.roles import READ_SECURITY_LOG
from dashboard.access.security_log import OK, SecurityEvent
from dashboard.lists import responses, url_parameters
from leases.history import security_records
from leases.history.security_records import SecurityFilter

PER_PAGE = 50
LARGEST_PAGE = 1000
FORMATS = ("", "html", "json", "csv", "ndjson")
EXPORTS = {
    "csv": (security_records.as_csv, "text/csv; charset=utf-8"),
    "ndjson": (security_records.ndjson, "application/x-ndjson"),
}
TEMPLATES = ("security_log/index.html", "security_log/_rows.html")
PARAMETERS = ("event", "who", "address", "q", "since", "until")
EVENTS = {
    SecurityEvent.SIGN_IN: "Sign-in",
    SecurityEvent.SIGN_IN_REFUSED: "Sign-in refused",
    SecurityEvent.SIGN_OUT: "Sign-out",
    SecurityEvent.TOKEN_CREATED: "Token made",
    SecurityEvent.TOKEN_USED_REFUSED: "Token refused",
    SecurityEvent.TOKEN_REVOKED: "Token revoked",
    SecurityEvent.ROLE_CHANGED: "Role changed",
    SecurityEvent.PASSWORD_CHANGED: "Password changed",
    SecurityEvent.LINK_CREATED: "Link made",
    SecurityEvent.LINK_REVOKED: "Link revoked",
    SecurityEvent.RECEIVER_CREATED: "Receiver made",
    SecurityEvent.RECEIVER_CHANGED: "Receiver changed",
    SecurityEvent.RECEIVER_TESTED: "Receiver tested",
    SecurityEvent.RECEIVER_DELETED: "Receiver deleted",
    SecurityEvent.EXPORT: "Export",
    SecurityEvent.PROXY_REFUSED: "Proxy refused",
    SecurityEvent.DEACTIVATED: "Deactivated",
}


@require_safe
def security_log(request: HttpRequest) -> HttpResponseBase:
    """The lines that match, as a page or JSON; or all of them, streamed as CSV or NDJSON."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    if not request.user.has_perm(READ_SECURITY_LOG):
        raise PermissionDenied(f"{request.user} may not read the security log. Ask an admin.")
    return _list(cast("ClusterRequest", request))


def _list(request: ClusterRequest) -> HttpResponseBase:
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        wanted = _read_filter(request.GET, now)
        limit = url_parameters.number(request.GET, "limit", default=PER_PAGE, largest=LARGEST_PAGE)
        page = url_parameters.page_number(request.GET)
    except url_parameters.BadFilter as refused:
        return _refuse(request, refused)
    if answer_as in EXPORTS:
        lines, content_type = EXPORTS[answer_as]
        name = f"security-{now:%Y%m%dT%H%M%SZ}.{answer_as}"
        return responses.stream(
            request,
            lines(wanted),
            content_type=content_type,
            filename=name,
            permission=READ_SECURITY_LOG,
        )
    found = Paginator(security_records.matching(wanted), limit).get_page(page)
    if answer_as == "json":
        total = found.paginator.count
        following = responses.next_page_url(request, number=found.number, limit=limit, total=total)
        items = [security_records.as_item(row) for row in found.object_list]
        return responses.items(items, total=total, next_url=following, now=now)
    shown = [
        {"row": row, "event": EVENTS.get(row.event, row.event), "phase": _phase(row.outcome)}  # type: ignore[call-overload]
        for row in found.object_list
    ]
    kept = _texts(wanted)
    context = _controls(kept) | {"lines": shown, "page": found}
    return responses.page(request, *TEMPLATES, context, query=urlencode(kept))


def _read_filter(query: QueryDict, now: datetime) -> SecurityFilter:
    until = url_parameters.read_moment(query.get("until", ""), "until", now)
    return SecurityFilter(
        event=url_parameters.one_of(query, "event", ("", *SecurityEvent)),
        who=url_parameters.text(query, "who"),
        address=url_parameters.text(query, "address"),
        text=url_parameters.text(query, "q"),
        since=url_parameters.read_moment(query.get("since", ""), "since", until or now),
        until=until,
    )


def _texts(wanted: SecurityFilter) -> dict[str, str]:
    """The parameters of the URL that are used."""
    texts = {
        "event": wanted.event,
        "who": wanted.who,
        "address": wanted.address,
        "q": wanted.text,
        "since": url_parameters.write_moment(wanted.since),
        "until": url_parameters.write_moment(wanted.until),
    }
    return {name: value for name, value in texts.items() if value}


def _controls(kept: dict[str, str]) -> dict[str, Any]:
    path = reverse("security_log")
    return {
        "board": kept,
        "filtered": bool(kept),
        "clear_url": path,
        "csv_url": f"{path}?{urlencode(kept | {'format': 'csv'})}",
        "ndjson_url": f"{path}?{urlencode(kept | {'format': 'ndjson'})}",
        "events": [(event.value, label) for event, label in EVENTS.items()],
    }


def _refuse(request: ClusterRequest, refused: url_parameters.BadFilter) -> HttpResponseBase:
    if request.GET.get("format") not in (None, "", "html"):
        return responses.json({"error": str(refused)}, status=400)
    context = _controls({}) | {
        "board": {name: url_parameters.typed(request.GET, name) for name in PARAMETERS},
        "error": str(refused),
        "bad": refused.parameter,
    }
    return responses.page(request, *TEMPLATES, context, status=400)


def _phase(outcome: str) -> str:
    """Which symbol and colour an outcome has."""
    return "held" if outcome == OK else "expired"
