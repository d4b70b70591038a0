"""Take care of an incident: receivers no longer hear that it worsens."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.parts.incident_line import incident_url
from leases.history.notify import acknowledgements
from leases.history.read.find_incidents import incident_of


@require_POST
@viewer_required
def acknowledge_incident(request: ClusterRequest, cluster: str, incident: str) -> HttpResponseBase:
    """POST acknowledges; with `back` it takes that back."""
    stored = incident_of(cluster, incident)
    if stored is None:
        raise Http404(f"{cluster} has no incident {incident[:80]!r}.")
    number, who = stored.incident.id, request.user.get_username()
    if request.POST.get("back"):
        acknowledgements.take_back(cluster, number)
        messages.success(
            request, "Nobody takes care of it now. Receivers hear of it if it worsens."
        )
    else:
        found = acknowledgements.acknowledge(cluster, number, who=who, at=clock.now())
        messages.success(request, f"{found.who} takes care of this incident.")
    return redirect(f"{incident_url(cluster, number)}#notifications")
