"""People and groups under /admin/, and the form that makes an account."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse

from dashboard.access import roles
from dashboard.access.accounts import end_ways_in, keep_own_pages
from dashboard.access.admin_site import RecordedChanges

if TYPE_CHECKING:
    Base = AdminUserCreationForm[User]
else:
    Base = AdminUserCreationForm  # not subscriptable at run time


class PersonCreationForm(Base):
    """`actor` is who makes the account: he gives no role that may do more than he."""

    actor: ClassVar[User]
    role = forms.ModelChoiceField(
        Group.objects.none(),
        empty_label="Choose a role",
        help_text="operator reads everything; admin also edits Leases and manages people.",
        error_messages={
            "required": "Choose a role: without one this person sees nothing.",
            "invalid_choice": "This is no role that you can give. Choose one of the list.",
        },
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = roles.grantable_groups(self.actor).order_by("-name")
        self.fields["role"].queryset = choices  # type: ignore[attr-defined]

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]
        self.instance.groups.add(self.cleaned_data["role"])


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
        return allowed and (obj is None or roles.may_manage(_actor(request), obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or roles.may_manage(_actor(request), obj))

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
            kwargs["queryset"] = roles.grantable_groups(_actor(request))
        elif db_field.name == "user_permissions":
            kwargs["queryset"] = roles.grantable_permissions(_actor(request))
        return super().formfield_for_manytomany(db_field, request, **kwargs)


class RolesAdmin(KeepsAnAdmin, RecordedChanges, GroupAdmin):
    """Groups that may do no more than the one who edits them."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or roles.may_manage_group(_actor(request), obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or roles.may_manage_group(_actor(request), obj))

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        if db_field.name == "permissions":
            kwargs["queryset"] = roles.grantable_permissions(_actor(request))
        return super().formfield_for_manytomany(db_field, request=request, **kwargs)


def register() -> None:
    """Take the places of Django's own two."""
    admin.site.unregister([User, Group])
    admin.site.register(User, PeopleAdmin)
    admin.site.register(Group, RolesAdmin)


def _guarded(view: Callable[..., Any], request: HttpRequest, *args: Any, **named: Any) -> Any:
    if request.method != "POST":
        return view(request, *args, **named)
    with roles.keeping_an_admin():
        return view(request, *args, **named)


def _actor(request: HttpRequest) -> User:
    return cast("User", request.user)  # the site lets in nobody else
