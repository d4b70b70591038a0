"""Everything about one Lease; of a deleted one what history knows."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard.access import ClusterRequest, viewer_required
from dashboard.forms.lease_kind import BY_THE_RULES, LeaseKindForm
from dashboard.presenters.change import change_line
from dashboard.presenters.facts import lease_detail
from dashboard.presenters.history_board import history_query
from dashboard.presenters.lease import lease_view
from dashboard.presenters.renewals import renewals_view
from dashboard.recent import changes_of
from dashboard.roles import OVERRULE
from leases.domain.lease import ObjectName
from leases.history.streams import HistoryFilter

CHANGES = 50


@require_GET
@viewer_required
def lease(request: ClusterRequest, cluster: str, namespace: str, name: str) -> HttpResponse:
    """Head, changes, fields and YAML."""
    now = timezone.now()
    key = ObjectName(namespace, name)
    feed_seq, changes = changes_of(cluster, key, CHANGES)
    tracked = request.cluster.store.get(key)
    if tracked is None and not changes:
        raise Http404(f"There is no Lease {key} in {cluster}, and history knows none of this name.")
    mine = history_query(HistoryFilter(namespace=namespace, lease=name))
    lines = [change_line(change, now) for change in changes]
    context: dict[str, Any] = {
        "namespace": namespace,
        "name": name,
        "key": str(key),
        "changes": lines,
        "feed_seq": feed_seq,
        "history_url": f"{reverse('history', args=[cluster])}?{mine}",
    }
    if tracked is None:
        context["last"] = lines[0]
    else:
        if request.user.has_perm(OVERRULE):
            said = {"kind": tracked.kind.value if tracked.overruled else BY_THE_RULES}
            context["kind_form"] = LeaseKindForm(initial=said)
        context["lease"] = lease_view(cluster, tracked, now)
        context["detail"] = lease_detail(tracked, now)
        context["renewals"] = renewals_view(tracked, request.cluster.renewals.of(tracked), now)
    return render(request, "leases/detail.html", context)
