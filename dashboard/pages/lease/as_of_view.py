"""One Lease as of an instant: `leases/<namespace>/<name>/?at=`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.access.guards import ClusterRequest
from dashboard.pages.lease.as_of_head import lease_as_of_view
from dashboard.pages.lease.past_terms import past_view
from dashboard.pages.lease.past_terms_query import read_past
from dashboard.pages.lease.stretch import LeasePastLinks, past_links, read_lease_stretch
from dashboard.parts.change_sentence import change_line
from dashboard.parts.lease.page_links import ShownTime, history_url, lease_pages
from dashboard.parts.query.blind_times import NOT_YET, blind_at, created_after
from dashboard.parts.query.url_time import passed, read_moment, write_moment
from leases.domain.lease import ObjectName
from leases.domain.past.as_of import PastPhase, PastState
from leases.history.read import find_changes
from leases.history.read.indexed_search import HistoryFilter
from leases.history.read.states_as_of import born_later, states_at
from leases.history.write.watched_spans import watched_since

CHANGES = 20
USUAL_RANGE = "24h"


def lease_as_of(
    request: ClusterRequest, cluster: str, key: ObjectName, *, now: datetime
) -> HttpResponse:
    """Holder, terms and changes up to `?at=`, from history. Raises BadFilter and BadCursor."""
    at = passed(read_moment(request.GET["at"], "at", now) or now, now)
    tracked = request.cluster.store.get(key)
    until = at + timedelta(microseconds=1)  # include what happened at this very instant
    mine = HistoryFilter(namespace=key.namespace, lease=key.name, until=until)
    found = find_changes.find(
        cluster, mine, before=request.GET.get("before") or None, limit=CHANGES
    )
    after = request.cluster.store.abandoned_after
    state = next(iter(states_at(cluster, [key], at, abandoned_after=after)), None)
    standing = state.standing if state else _not_there(request, key, at, found.total)
    if tracked is None and not found.total and not born_later(cluster, [key], at):
        raise Http404(f"There is no Lease {key} in {cluster}, and history knows none of this name.")
    past, around = _past(request, cluster, key, at, now)
    past["pages"] = lease_pages(cluster, key, state.kind if state else None, around.time)
    context: dict[str, Any] = {
        "namespace": key.namespace,
        "name": key.name,
        "key": str(key),
        "head": lease_as_of_view(
            standing, state=state, at=at, now=now, blind=blind_at(cluster, at, now)
        ),
        "past": past,
        "lines": [change_line(change, now) for change in found.changes],
        "older_url": around.links.url(before=found.older) if found.older else "",
        "newest_url": around.links.url(before="") if request.GET.get("before") else "",
        "now_url": request.path if tracked else reverse("leases", args=[cluster]),
        "there_now": tracked is not None,
        "at": at,
        "leases_url": f"{reverse('leases', args=[cluster])}?{urlencode({'at': write_moment(at)})}",
        "history_url": history_url(cluster, key, ShownTime(at=at)),
    }
    return render(request, "leases/detail_as_of.html", context)


def _not_there(request: ClusterRequest, key: ObjectName, at: datetime, changes: int) -> PastState:
    """The state of a Lease without history at that instant: deleted, not created or unknown."""
    if changes:
        return PastState(exists=False, phase=PastPhase.DELETED, since=at)
    tracked = request.cluster.store.get(key)
    if created_after(tracked, at) or born_later(request.cluster.name, [key], at):
        return NOT_YET
    return PastState(exists=False, phase=PastPhase.UNKNOWN)


def _past(
    request: ClusterRequest, cluster: str, key: ObjectName, at: datetime, now: datetime
) -> tuple[dict[str, Any], LeasePastLinks]:
    """The past up to the instant, and the links around it. Raises BadFilter."""
    wanted = read_lease_stretch(request.GET, at, USUAL_RANGE, instant=at)
    around = past_links(request.path, wanted, at, watched=watched_since(cluster))
    past = read_past(cluster, key, around.shown, now=now)
    end = around.shown.until
    view = past_view(past, around.choices, now, zoom=around.zoom, end=end)
    return view, around
