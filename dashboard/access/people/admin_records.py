"""What is done to people and groups under `/admin/`, as lines of the security log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in.client_address import full_address


class RecordedChanges:
    """Beside a ModelAdmin, which calls these after each change."""

    def log_addition(self, request: HttpRequest, obj: User | Group, message: Any) -> Any:
        note(request, SecurityEvent.ROLE_CHANGED, f"{obj}: added{_roles(obj)}")
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: User | Group, message: Any) -> Any:
        fields = [name for one in message for name in one.get("changed", {}).get("fields", ())]
        event = SecurityEvent.ROLE_CHANGED
        if any("password" in name.lower() for name in fields):
            event = SecurityEvent.PASSWORD_CHANGED
        elif "Active" in fields and not getattr(obj, "is_active", True):
            event = SecurityEvent.DEACTIVATED
        if fields:
            note(request, event, f"{obj}: changed {', '.join(fields)}{_roles(obj)}")
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: Iterable[User | Group]) -> Any:
        gone = list(queryset)
        for one in gone:
            note(request, SecurityEvent.ROLE_CHANGED, f"{one}: deleted")
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def note(request: HttpRequest, event: SecurityEvent, about: str) -> None:
    address = full_address(request.META.get("REMOTE_ADDR"))
    record(event, who=request.user.get_username(), address=address, about=about)


def _roles(changed: User | Group) -> str:
    if isinstance(changed, Group):
        return ""
    names = sorted(changed.groups.values_list("name", flat=True))
    return f"; roles: {', '.join(names) or 'none'}"
