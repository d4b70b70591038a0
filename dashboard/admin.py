"""Django's admin shows the audit trail and what history could not store, both read-only; people and
groups are `dashboard.access.people.people_admin`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from dashboard.access.people import people_admin
from leases.models import Edit, RefusedRow

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin  # not subscriptable at run time


people_admin.register()


class ReadOnly(Base):
    """Nobody writes these rows by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Edit)
class EditAdmin(ReadOnly):
    """Every write that was made through a form."""

    list_display = ("at", "username", "cluster", "namespace", "name", "action", "outcome")


@admin.register(RefusedRow)
class RefusedRowAdmin(ReadOnly):
    """What the database refused, with the whole of what it held."""

    list_display = ("at", "cluster", "what", "namespace", "name", "error")
    list_filter = ("cluster", "what")
    ordering = ("-at", "-id")
