"""`/c/<cluster>/switch/?from=` leads from a page of another cluster to the same page here."""

from __future__ import annotations

from urllib.parse import unquote

from django.http import HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.urls import Resolver404, resolve, reverse
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest, viewer_required
from leases.domain.lease import ObjectName
from leases.history.read import find_changes
from leases.tracking.store import Store

PAGES = (
    "leases", "new_lease", "timeline", "holders", "nodes", "incidents", "near_misses",
    "reliability", "history", "stretch",
)  # fmt: skip
# A cursor is a place in one list, and a holder's identity belongs to one cluster.
DROPPED = ("page", "before", "holder", "absent", "format")


@require_safe
@viewer_required
def switch(request: ClusterRequest, cluster: str) -> HttpResponseBase:
    """Redirect to the same page with the filters that make sense here."""
    return redirect(same_page(cluster, request.cluster.store, request.GET.get("from", "")))


def same_page(cluster: str, store: Store, address: str) -> str:
    """The URL in `cluster` for the path and query of a page; the overview if it has no such page.

    A Lease that the cluster never had leads to its list of Leases, which says so.
    """
    path, _, query = address.partition("?")
    path, kept = unquote(path), QueryDict(query, mutable=True)
    try:
        found = resolve(path)
    except Resolver404:
        return reverse("overview", args=[cluster])
    for name in DROPPED:
        kept.pop(name, None)
    if kept.get("namespace") not in store.namespaces():
        kept.pop("namespace", None)
    page, parts = found.url_name, [cluster]
    if "namespace" in found.kwargs and "\0" not in path:
        key = ObjectName(found.kwargs["namespace"], found.kwargs["name"])
        if _knows(store, key):
            page, parts = "lease", [cluster, key.namespace, key.name]
        else:
            page, kept = "leases", QueryDict(mutable=True)
            kept["absent"] = str(key)
    elif page not in PAGES:
        page, kept = "overview", QueryDict()
    url = reverse(str(page), args=parts)
    return f"{url}?{kept.urlencode()}" if kept else url


def _knows(store: Store, key: ObjectName) -> bool:
    """Whether the Lease is there, or was: its page then shows its history."""
    if store.get(key) is not None:
        return True
    return bool(find_changes.of_lease(store.cluster, key.namespace, key.name, 1))
