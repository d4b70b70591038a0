"""Django's admin shows the audit trail read-only; users and groups it brings itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from leases.models import Edit

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Edit]
else:
    Base = admin.ModelAdmin  # not subscriptable at run time


@admin.register(Edit)
class EditAdmin(Base):
    """Nobody writes audit rows by hand."""

    list_display = ("at", "username", "cluster", "namespace", "name", "action", "outcome")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
