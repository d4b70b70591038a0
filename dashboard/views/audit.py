"""Who edited what: every write made through a form, newest first."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.access.guards import check_view
from leases.models import Edit

PER_PAGE = 50


@require_GET
def audit(request: HttpRequest) -> HttpResponseBase:
    """A page of the audit trail."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    if not request.user.has_perm("leases.view_edit"):
        raise PermissionDenied(f"{request.user} may not read the audit trail.")
    page = Paginator(Edit.objects.order_by("-at", "-id"), PER_PAGE).get_page(
        request.GET.get("page")
    )
    return render(request, "audit/index.html", {"edits": page.object_list, "page": page})
