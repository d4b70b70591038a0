"""Who may open these pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache

from dashboard.access.guards import check_view
from dashboard.access.roles import RECEIVERS

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def receivers_required(view: View[P]) -> Callable[..., HttpResponseBase]:
    """For those who may set where messages go: admins."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        refusal = check_view(request)
        if refusal is not None:
            return refusal
        if not request.user.has_perm(RECEIVERS):
            raise PermissionDenied(f"{request.user} may not manage notifications. Ask an admin.")
        return view(request, *args, **kwargs)

    return guarded
