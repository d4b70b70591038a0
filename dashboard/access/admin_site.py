"""The site under /admin/: who gets in, and the log lines of what is done there."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.access.accounts import keep_own_pages
from dashboard.access.roles import PEOPLE
from dashboard.access.security_log import SecurityEvent, record_by


class RecordedChanges:
    """Beside a ModelAdmin, which calls these after each change."""

    def log_addition(self, request: HttpRequest, obj: User | Group, message: Any) -> Any:
        record_by(request, SecurityEvent.ROLE_CHANGED, f"{obj}: added{_roles(obj)}")
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: User | Group, message: Any) -> Any:
        fields = [name for one in message for name in one.get("changed", {}).get("fields", ())]
        event = SecurityEvent.ROLE_CHANGED
        if any("password" in name.lower() for name in fields):
            event = SecurityEvent.PASSWORD_CHANGED
        elif "Active" in fields and not getattr(obj, "is_active", True):
            event = SecurityEvent.DEACTIVATED
        if fields:
            record_by(request, event, f"{obj}: changed {', '.join(fields)}{_roles(obj)}")
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: Iterable[User | Group]) -> Any:
        gone = list(queryset)
        for one in gone:
            record_by(request, SecurityEvent.ROLE_CHANGED, f"{one}: deleted")
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def _roles(changed: User | Group) -> str:
    if isinstance(changed, Group):
        return ""
    names = sorted(changed.groups.values_list("name", flat=True))
    return f"; roles: {', '.join(names) or 'none'}"


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
            record_by(request, SecurityEvent.PASSWORD_CHANGED, f"{request.user}: by themselves")
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
