"""The front door: the first cluster's overview."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from dashboard import runtime


@require_safe
def home(_request: HttpRequest) -> HttpResponse:
    """The first cluster named on the command line; access is checked there."""
    return redirect("overview", cluster=next(iter(runtime.get().clusters)))
