"""The form that adds a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator

from dashboard.forms.plain_form import PlainForm
from dashboard.forms.widgets import Dropdown, TextLine

NOT_YOURS = "This is no role that you can give. Choose one of the list."


class NewPersonForm(PlainForm):
    """The name and the role of somebody new."""

    username = forms.CharField(
        label="Name",
        max_length=150,
        widget=TextLine(),
        help_text="To sign in with. You get a sign-in link to hand over.",
        validators=[UnicodeUsernameValidator()],
        error_messages={"required": "Write the name to sign in with."},
    )
    role = forms.ChoiceField(
        label="Role",
        widget=Dropdown(),
        help_text="operator reads everything; admin also edits Leases and manages people.",
        error_messages={
            "required": "Choose a role: without one this person sees nothing.",
            "invalid_choice": NOT_YOURS,
        },
    )

    def __init__(self, *args: Any, roles: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = [(name, name) for name in roles]  # type: ignore[attr-defined]

    def clean_username(self) -> str:
        name: str = User.normalize_username(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError("There is a person of this name already; choose another.")
        return name
