"""The audit trail: every write through a form, newest first."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_view
from dashboard.parts.query.url_parameters import BadFilter, page_number
from leases.models import Edit

PER_PAGE = 50


@require_safe
def audit(request: HttpRequest) -> HttpResponseBase:
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    if not request.user.has_perm("leases.view_edit"):
        raise PermissionDenied(f"{request.user} may not read the audit trail.")
    number, error = 1, ""
    try:
        number = page_number(request.GET)
    except BadFilter as refused:
        error = str(refused)
    page = Paginator(Edit.objects.order_by("-at", "-id"), PER_PAGE).get_page(number)
    context = {"edits": page.object_list, "page": page, "error": error}
    return render(request, "audit/index.html", context, status=400 if error else 200)
