"""The page after a write: what the watch has reported since."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.access.roles import READ_TRAIL
from dashboard.pages.edit.outcome import outcome_of
from dashboard.parts.lease.row import lease_url, row_view
from dashboard.parts.query.recent_changes import changes_of
from leases.domain.lease import ObjectName
from leases.models import Edit

CHANGES = 20


@require_safe
@viewer_required
def lease_outcome(
    request: ClusterRequest, cluster: str, namespace: str, name: str, number: int
) -> HttpResponse:
    key = ObjectName(namespace, name)
    row = Edit.objects.filter(pk=number, cluster=cluster, namespace=namespace, name=name).first()
    if row is None or not (row.user == request.user or request.user.has_perm(READ_TRAIL)):
        raise Http404(f"No write {number} of {key} in {cluster} is known.")
    now = clock.now()
    as_of = request.cluster.as_of(now)
    tracked = request.cluster.store.get(key)
    _, changes = changes_of(cluster, key, CHANGES)
    context = {
        "key": str(key),
        "namespace": namespace,
        "name": name,
        "url": lease_url(cluster, key),
        "edit": row,
        "outcome": outcome_of(row, tracked, changes, now),
        "lease": tracked,
        "row": row_view(cluster, tracked, as_of) if tracked else None,
        "read_at": as_of,
    }
    return render(request, "forms/outcome.html", context)
