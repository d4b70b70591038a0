"""The 403 page, also for a person without a role."""

from __future__ import annotations

from django.contrib.auth.models import Permission, User
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.access.guards import NoRole

MAX_ADMINS = 5  # named to a person without a role


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 with the reason; a person without a role sees whom to ask, and can sign out."""
    if isinstance(exception, NoRole):
        return render(request, "no_role.html", {"admins": _admins()}, status=403)
    return render(request, "403.html", {"exception": str(exception)}, status=403)


def _admins() -> list[str]:
    """The people who can give a role; who signed in last comes first."""
    gives = Permission.objects.filter(content_type__app_label="auth", codename="change_user")
    may = Q(is_superuser=True) | Q(groups__permissions__in=gives) | Q(user_permissions__in=gives)
    found = User.objects.filter(may, is_active=True).distinct()
    last_seen = F("last_login").desc(nulls_last=True)
    return [
        admin.get_full_name() or admin.get_username()
        for admin in found.order_by(last_seen, "username")[:MAX_ADMINS]
    ]
