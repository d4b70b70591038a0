"""People and groups under `/admin/`. The forms offer what the one who looks may give, and the
server refuses the rest however it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse

from dashboard.access.people.account_changes import end_ways_in
from dashboard.access.people.admin_records import RecordedChanges
from dashboard.access.people.admins import keeping_an_admin
from dashboard.access.people.manageable import (
    grantable_groups,
    grantable_permissions,
    may_manage,
    may_manage_group,
)
from dashboard.access.people.own_password import keep_own_pages
from dashboard.access.people.person_creation_form import PersonCreationForm

if TYPE_CHECKING:
    Users = UserAdmin[User]
else:
    Users = UserAdmin  # not subscriptable at run time

FOR_SUPERUSERS = ("is_staff", "is_superuser")


class KeepsAnAdmin:
    """Beside a ModelAdmin: undo and refuse each form that would leave nobody who manages people."""

    def changeform_view(self, request: HttpRequest, *args: Any, **named: Any) -> Any:
        return _guarded(super().changeform_view, request, *args, **named)  # type: ignore[misc]

    def delete_view(self, request: HttpRequest, *args: Any, **named: Any) -> Any:
        return _guarded(super().delete_view, request, *args, **named)  # type: ignore[misc]

    def changelist_view(self, request: HttpRequest, *args: Any, **named: Any) -> Any:
        return _guarded(super().changelist_view, request, *args, **named)  # type: ignore[misc]


class PeopleAdmin(KeepsAnAdmin, RecordedChanges, Users):
    """Accounts of people who may do no more than the one who edits them."""

    add_fieldsets = (
        (
            None,
            {
                "classes": ("wide",),
                "fields": ("username", "role", "usable_password", "password1", "password2"),
            },
        ),
    )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_manage(_actor(request), obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_manage(_actor(request), obj))

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            end_ways_in(obj)

    def user_change_password(self, request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        return keep_own_pages(super().user_change_password, request, *args, **named)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is None:
            mine = {"actor": _actor(request)}
            kwargs["form"] = type("NewPersonForm", (PersonCreationForm,), mine)
        return super().get_form(request, obj, change=change, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if _actor(request).is_superuser else (*fields, *FOR_SUPERUSERS)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            kwargs["queryset"] = grantable_groups(_actor(request))
        elif db_field.name == "user_permissions":
            kwargs["queryset"] = grantable_permissions(_actor(request))
        return super().formfield_for_manytomany(db_field, request, **kwargs)


class RolesAdmin(KeepsAnAdmin, RecordedChanges, GroupAdmin):
    """Groups that may do no more than the one who edits them."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or may_manage_group(_actor(request), obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_manage_group(_actor(request), obj))

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        if db_field.name == "permissions":
            kwargs["queryset"] = grantable_permissions(_actor(request))
        return super().formfield_for_manytomany(db_field, request=request, **kwargs)


def register() -> None:
    """Take the places of Django's own two."""
    admin.site.unregister([User, Group])
    admin.site.register(User, PeopleAdmin)
    admin.site.register(Group, RolesAdmin)


def _guarded(view: Callable[..., Any], request: HttpRequest, *args: Any, **named: Any) -> Any:
    if request.method != "POST":
        return view(request, *args, **named)
    with keeping_an_admin():
        return view(request, *args, **named)


def _actor(request: HttpRequest) -> User:
    return cast("User", request.user)  # the site lets in nobody else
