"""`/` leads to the overview of the first cluster."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_view
from dashboard.board import running_board


@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the first configured cluster. A stranger does not learn its name."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    return redirect("overview", cluster=next(iter(running_board().clusters)))
