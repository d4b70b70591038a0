"""The list of incidents, as a page, JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.pages.incidents.export import as_csv, incident_item
from dashboard.pages.incidents.filter import IncidentFilter, read_incident_filter
from dashboard.pages.incidents.list_controls import (
    IncidentLinks,
    incident_board,
    typed_board,
)
from dashboard.pages.incidents.near_misses import near_miss_line, near_misses, none_near
from dashboard.pages.incidents.no_incident import no_incident
from dashboard.parts.cause_words import CONFIDENCE_MEANINGS
from dashboard.parts.frame import responses
from dashboard.parts.incident_line import cause_view, incident_line
from dashboard.parts.query.url_parameters import LARGEST_PAGE, BadFilter, quoted
from leases.domain.cause.incident import Cause, Incident
from leases.history.read.find_changes import BadCursor
from leases.history.read.find_incidents import (
    StoredIncident,
    count_incidents,
    cursor_of,
    find_incidents,
)

FORMATS = ("", "html", "json", "csv")
TEMPLATES = ("incidents/index.html", "incidents/_rows.html")
NEAREST = 5  # near misses beside the list
MAX_NAMESPACES = 500  # offered; any other can be typed


@require_safe
@viewer_required
def incidents(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """Those that go on first, then the newest; JSON and CSV are the newest first."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request, FORMATS)
        wanted = read_incident_filter(request.GET, now)
        if answer_as == "csv":
            return _csv(request, wanted, now)
        counts = count_incidents(cluster, **_scope(wanted, now))
        board = incident_board(request.path, wanted, counts)
        if answer_as == "json":
            return _json(request, wanted, board["total"], now)
        found, older = _page(cluster, wanted, now)
    except BadFilter as error:
        return _refuse(request, error)
    as_of = request.cluster.as_of(now)
    context: dict[str, Any] = {
        "board": board,
        "lines": [incident_line(one.incident, as_of) for one in found],
        "older_url": _older(request.path, wanted, older),
        "calm": None if found else no_incident(request.cluster, now),
        "plain": wanted.plain,
        **_beside(request, now),
    }
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def _beside(request: ClusterRequest, now: datetime) -> dict[str, Any]:
    """What does not depend on the filter."""
    misses, cluster = near_misses(request.cluster, now), request.cluster.name
    return {
        "misses": [near_miss_line(cluster, one, now) for one in misses[:NEAREST]],
        "more_misses": max(0, len(misses) - NEAREST),
        "none_near": none_near(request.cluster, now),
        "confidences": [
            (cause_view(Cause.UNKNOWN, confidence), meaning)
            for confidence, meaning in CONFIDENCE_MEANINGS.items()
        ],
        "namespaces": request.cluster.store.namespaces()[:MAX_NAMESPACES],
    }


def _scope(wanted: IncidentFilter, now: datetime) -> dict[str, Any]:
    """The filter without its causes and states, which the counts tell apart."""
    return {
        "namespace": wanted.namespace or None,
        "lease": wanted.lease or None,
        "holder": wanted.holder or None,
        "since": wanted.first(now),
        "until": wanted.until,
    }


def _find(
    cluster: str, wanted: IncidentFilter, now: datetime, *, going_on: bool | None
) -> tuple[list[StoredIncident], str]:
    """A page of incidents, newest first, and the cursor of the next page. Raises BadFilter."""
    try:
        found = find_incidents(
            cluster,
            causes=wanted.causes,
            **_scope(wanted, now),
            going_on=going_on,
            limit=wanted.limit + 1,
            before=wanted.before or None,
        )
    except BadCursor as error:
        raise BadFilter(
            f"before cannot be {quoted(wanted.before)}: it is not a page of these incidents. "
            "Start again without it."
        ) from error
    page = found[: wanted.limit]
    return page, cursor_of(page[-1]) if len(found) > len(page) else ""


def _page(cluster: str, wanted: IncidentFilter, now: datetime) -> tuple[list[StoredIncident], str]:
    """As `_find`; without a choice, the first page begins with those that go on."""
    if wanted.going_on:
        return _find(cluster, wanted, now, going_on=wanted.going_on == "true")
    over, older = _find(cluster, wanted, now, going_on=False)
    if wanted.before:
        return over, older
    going_on, _ = _find(cluster, wanted, now, going_on=True)
    return [*going_on, *over], older


def _older(path: str, wanted: IncidentFilter, cursor: str) -> str:
    return IncidentLinks(path, wanted).url(before=cursor) if cursor else ""


def _json(
    request: ClusterRequest, wanted: IncidentFilter, total: int, now: datetime
) -> HttpResponse:
    found, older = _find(request.cluster.name, wanted, now, going_on=_state(wanted))
    url = IncidentLinks(request.path, wanted).json_url(before=older) if older else ""
    return responses.items(
        [incident_item(one.incident, one.changes) for one in found],
        total=total,
        next_url=request.build_absolute_uri(url) if url else None,
        now=now,
        known=request.cluster,
    )


def _csv(request: ClusterRequest, wanted: IncidentFilter, now: datetime) -> HttpResponseBase:
    """All that match, newest first."""

    def found() -> Iterator[tuple[Incident, int]]:
        at = wanted.replace(limit=LARGEST_PAGE, before="")
        while True:
            page, older = _find(request.cluster.name, at, now, going_on=_state(wanted))
            yield from ((one.incident, one.changes) for one in page)
            if not older:
                return
            at = at.replace(before=older)

    name = f"{request.cluster.name}-incidents-{now:%Y%m%dT%H%M%SZ}.csv"
    return responses.stream(
        request, as_csv(found()), content_type="text/csv; charset=utf-8", filename=name
    )


def _state(wanted: IncidentFilter) -> bool | None:
    return wanted.going_on == "true" if wanted.going_on else None


def _refuse(request: ClusterRequest, refused: BadFilter) -> HttpResponse:
    error, query = str(refused), request.GET
    by_form = query.get("format") == "csv" and "text/html" in request.headers.get("Accept", "")
    if query.get("format") not in (None, "", "html") and not by_form:
        return responses.json({"error": error}, status=400)
    context = {
        "board": typed_board(request.path, query),
        "error": error,
        "bad": refused.parameter,
        **_beside(request, clock.now()),
    }
    return responses.page(request, *TEMPLATES, context, status=400)
