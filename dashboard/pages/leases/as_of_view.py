"""The list of Leases as of an instant: `leases/?at=`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse

from dashboard import clock
from dashboard.access.guards import ClusterRequest
from dashboard.pages.leases.as_of_list import board_as_of, item_as_of, row_as_of
from dashboard.pages.leases.as_of_search import FoundAsOf, find_as_of
from dashboard.parts.frame import responses
from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.query.blind_times import blind_at
from dashboard.parts.query.lease_filter import LeaseFilter, typed_texts
from dashboard.parts.query.url_parameters import BadFilter, typed
from dashboard.parts.query.url_time import passed, read_moment

TEMPLATES = ("leases/as_of.html", "leases/_rows_as_of.html")


def leases_as_of(
    request: ClusterRequest,
    cluster: str,
    wanted: LeaseFilter,
    *,
    now: datetime,
    answer_as: str,
) -> HttpResponse:
    """The list as of `?at=`, as a page or as JSON. Raises BadFilter."""
    at = passed(read_moment(request.GET.get("at", ""), "at", now) or now, now)
    wanted, blind = wanted.replace(at=at), blind_at(cluster, at, now)
    found = find_as_of(request.cluster.store, wanted, at)
    if answer_as == "json":
        return _json(request, wanted, found, at, now, watched=blind is None)
    context: dict[str, Any] = {
        "board": board_as_of(request.path, wanted, found, at=at, now=now, blind=blind),
        "rows": [row_as_of(cluster, state, at, now) for state in found.page],
    }
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def refuse_as_of(request: ClusterRequest, refused: BadFilter) -> HttpResponse:
    """Refuse an instant or a filter, and keep what was typed."""
    now, query = clock.now(), request.GET
    nothing = FoundAsOf(page=[], number=1, total=0, whole=True, phases={})
    everything = LeaseFilter(at=now)
    usual = board_as_of(request.path, everything, nothing, at=now, now=now, blind=None)
    kept = usual | {"at": typed(query, "at"), "wanted": typed_texts(query)}
    context = {"board": kept, "error": str(refused), "bad": refused.parameter}
    return responses.page(request, *TEMPLATES, context, status=400)


def _json(
    request: ClusterRequest,
    wanted: LeaseFilter,
    found: FoundAsOf,
    at: datetime,
    now: datetime,
    *,
    watched: bool,
) -> HttpResponse:
    next_url = None
    if found.number * wanted.limit < found.total:
        path = ListLinks(request.path, wanted).json_url(page=found.number + 1)
        next_url = request.build_absolute_uri(path)
    items = [item_as_of(request.cluster.name, state, at, watched=watched) for state in found.page]
    return responses.items(items, total=found.total, next_url=next_url, now=now)
