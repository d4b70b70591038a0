"""Ask the cluster for Events, writers and candidates; the Lease's page loads them afterwards."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import check_view, find_cluster
from dashboard.pages.lease.events_and_candidates import asked_view
from dashboard.parts.kept.cluster_questions import ask
from leases.domain.lease import ObjectName


@require_safe
async def lease_asked(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """The answers as a part of the Lease's page, or as a page of their own."""
    refusal = await sync_to_async(check_view)(request)
    if refusal is not None:
        return refusal
    watched = request.cluster = find_cluster(cluster)  # type: ignore[attr-defined]
    key = ObjectName(namespace, name)
    asked = await ask(watched, key)
    tracked = watched.store.get(key)
    lease = tracked.lease if tracked else None
    context = {
        "namespace": namespace,
        "name": name,
        "asked": asked_view(asked, lease, clock.now()),
    }
    part = request.htmx and not request.htmx.history_restore_request  # type: ignore[attr-defined]
    template = "leases/_asked.html" if part else "leases/asked.html"
    response = await sync_to_async(render)(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response
