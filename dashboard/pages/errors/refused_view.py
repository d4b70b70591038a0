"""The answers 403, also for a person without a role, and 404."""

from __future__ import annotations

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import page_not_found

from dashboard.access.guards import NoRole
from dashboard.access.people.admins import active_admins
from dashboard.access.programs.problem import is_program, problem

MAX_ADMINS = 5  # named to a person without a role


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 with the reason; a person without a role sees whom to ask, and can sign out."""
    if is_program(request):
        return problem(403, str(exception))
    if isinstance(exception, NoRole):
        return render(request, "no_role.html", {"admins": _admins()}, status=403)
    return render(request, "403.html", {"exception": str(exception)}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 with the reason."""
    if is_program(request):
        said = exception.args[0] if exception.args else ""
        return problem(404, said if isinstance(said, str) else "Check the address.")
    return page_not_found(request, exception)


def _admins() -> list[str]:
    """The people who can give a role; who signed in last comes first."""
    last_seen = F("last_login").desc(nulls_last=True)
    return [
        admin.get_full_name() or admin.get_username()
        for admin in active_admins().order_by(last_seen, "username")[:MAX_ADMINS]
    ]
