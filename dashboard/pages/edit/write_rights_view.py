"""What the cluster would refuse; a page with buttons to forms loads it afterwards."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_editor, find_cluster
from dashboard.parts.frame.write_rights import ON_LEASE, ON_LIST, rights_of
from dashboard.parts.kept.write_access import may_write_each
from dashboard.parts.query.url_parameters import BadFilter, one_of, text

CHOICES = {",".join(verbs): verbs for verbs in (ON_LEASE, ON_LIST)}


@require_safe
async def write_rights(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """`namespace` may be empty: all of them. `verbs` are those of a page's buttons."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = request.cluster = find_cluster(cluster)  # type: ignore[attr-defined]
    try:
        namespace = text(request.GET, "namespace")
        verbs = CHOICES[one_of(request.GET, "verbs", tuple(CHOICES))]
    except BadFilter as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    answers = await may_write_each(watched, await request.auser(), namespace, verbs)
    context = {"rights": rights_of(answers)}
    return await sync_to_async(render)(request, "forms/_write_rights.html", context)
