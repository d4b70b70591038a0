"""The form that makes an account: it asks for a role, for without one a person sees nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group, User

from dashboard.access.people.manageable import grantable_groups

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
        choices = grantable_groups(self.actor).order_by("-name")
        self.fields["role"].queryset = choices  # type: ignore[attr-defined]

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]
        self.instance.groups.add(self.cleaned_data["role"])
