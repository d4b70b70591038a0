"""The site under `/admin/`: who gets in, and where a stranger signs in."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.access.people.admin_records import note
from dashboard.access.people.own_password import keep_own_pages
from dashboard.access.roles import PEOPLE
from dashboard.access.security_log import SecurityEvent


def may_enter(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether `/admin/` is open to this user. Each model in it asks for permissions of its own."""
    return bool(user.is_active and (user.has_perm(PEOPLE) or getattr(user, "is_staff", False)))  # type: ignore[attr-defined]


class BoardAdminSite(AdminSite):
    """Open to whoever may see people: the role admin needs no `is_staff`."""

    site_header = site_title = "Leaseboard"
    index_title = "People, groups and records"

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request.user)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        answer = keep_own_pages(super().password_change, request, extra_context)
        if answer.status_code == HTTPStatus.FOUND:
            note(request, SecurityEvent.PASSWORD_CHANGED, f"{request.user}: by themselves")
        return answer

    def login(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """No second form for passwords: everybody signs in at the one door."""
        there = request.GET.get("next") or request.path.removesuffix("login/")
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise PermissionDenied(f"{request.user} may not manage people. Ask an admin.")
        return redirect_to_login(there)
