"""The list of Leases: filter, sort, page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.pages.leases.as_of_view import leases_as_of, refuse_as_of
from dashboard.pages.leases.lease_json import lease_item
from dashboard.parts.formatting import shortened
from dashboard.parts.frame import responses
from dashboard.parts.frame.list_controls import board
from dashboard.parts.frame.write_rights import ON_LIST, known_rights
from dashboard.parts.kept.flapping_leases import Flappers, flappers_of
from dashboard.parts.lease.row import row_view
from dashboard.parts.query.lease_filter import RANGES, LeaseFilter, read_filter, typed_texts
from dashboard.parts.query.lease_search import FoundLeases, find
from dashboard.parts.query.url_parameters import BadFilter, typed
from dashboard.parts.query.watched_day import unwatched_by_hour
from leases.domain.lease import ObjectName
from leases.history.read.hourly_activity import HOUR, Activity

TEMPLATES = ("leases/index.html", "leases/_rows.html")
MAX_NAME = 253  # characters, as Kubernetes has it


@require_safe
@viewer_required
def leases(request: ClusterRequest, cluster: str) -> HttpResponse:
    """The list as a page, as the part that a filter changes, or as JSON; with `?at=` as of then."""
    now = clock.now()
    try:
        answer_as = responses.read_format(request)
        wanted = read_filter(request.GET)
        if request.GET.get("at"):
            return leases_as_of(request, cluster, wanted, now=now, answer_as=answer_as)
    except BadFilter as error:
        return _refuse(request, error)
    activity = running_board().activity(cluster)
    store = request.cluster.store
    as_of = request.cluster.as_of(now)
    flappers = flappers_of(cluster, as_of)
    busy = partial(_changes_of, activity, wanted.range, now)
    found = find(store, wanted, flapping=flappers, busy=busy)
    if answer_as == "json":
        return _json(request, cluster, wanted, found, flappers, now)
    unwatched = unwatched_by_hour(activity.watched, now)
    context: dict[str, Any] = {
        "board": board(request.path, wanted, found, store.namespaces()),
        "rows": [
            row_view(
                cluster,
                lease,
                as_of,
                hours=activity.of(lease.key, now),
                unwatched=unwatched,
                flapping=flappers.get(lease.key),
            )
            for lease in found.page
        ],
        "absent": _absent(request),
        "rights": known_rights(request, wanted.namespace, ON_LIST),
    }
    return responses.page(request, *TEMPLATES, context, query=wanted.query())


def _changes_of(activity: Activity, name: str, now: datetime) -> Mapping[ObjectName, int]:
    """The number of changes in a range, by Lease. Hours count whole, but the last one."""
    length = RANGES[name]
    if length <= HOUR:
        return activity.last_hour.totals(now - length)
    return activity.totals(now, hours=length // HOUR)


def _absent(request: ClusterRequest) -> dict[str, str]:
    """The Lease of another cluster that this one does not have: see switch_view."""
    namespace, _, name = typed(request.GET, "absent").partition("/")
    if not name or request.cluster.store.get(ObjectName(namespace, name)) is not None:
        return {}
    return {"key": shortened(f"{namespace}/{name}", MAX_NAME), "name": name[:MAX_NAME]}


def _refuse(request: ClusterRequest, refused: BadFilter) -> HttpResponse:
    """Refuse a filter, keep what was typed, and show all Leases."""
    error = str(refused)
    if request.GET.get("format") == "json":
        return responses.json({"error": error}, status=400)
    if request.GET.get("at"):
        return refuse_as_of(request, refused)
    everything, store = LeaseFilter(), request.cluster.store
    flappers = flappers_of(request.cluster.name, request.cluster.as_of(clock.now()))
    found = find(store, everything, flapping=flappers)
    usual = board(request.path, everything, found, store.namespaces())
    kept = usual | {"wanted": typed_texts(request.GET)}
    context = {"board": kept, "error": error}
    return responses.page(request, *TEMPLATES, context, status=400)


def _json(
    request: ClusterRequest,
    cluster: str,
    wanted: LeaseFilter,
    found: FoundLeases,
    flappers: Flappers,
    now: datetime,
) -> HttpResponse:
    return responses.items(
        [lease_item(cluster, lease, flappers.get(lease.key)) for lease in found.page],
        total=found.total,
        next_url=responses.next_page_url(
            request, number=found.number, limit=wanted.limit, total=found.total
        ),
        now=now,
        known=request.cluster,
    )
