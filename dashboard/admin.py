"""Django's admin: the audit trail and the refused rows of history, both read-only.

`dashboard.access.people_admin` registers people and groups.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from dashboard.access import people_admin
from leases.models import Edit, RefusedRow

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin  # not subscriptable at run time


people_admin.register()


class ReadOnlyAdmin(Base):
    """Rows that nobody may add, change or delete by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Edit)
class EditAdmin(ReadOnlyAdmin):
    """Every write through a form."""

    list_display = ("at", "username", "cluster", "namespace", "name", "action", "outcome")


@admin.register(RefusedRow)
class RefusedRowAdmin(ReadOnlyAdmin):
    """Rows that the database refused, with their full content."""

    list_display = ("at", "cluster", "what", "namespace", "name", "error")
    list_filter = ("cluster", "what")
    ordering = ("-at", "-id")
