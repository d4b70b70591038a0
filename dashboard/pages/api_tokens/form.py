"""The form that makes an API token."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User

from dashboard.access.programs import api_tokens
from dashboard.forms.plain_form import PlainForm
from dashboard.forms.widgets import TextLine, WholeNumber
from leases.models import ApiToken

ROLE_WORDS = {
    "operator": "operator: reads Leases, history, incidents and the audit trail",
    "admin": "admin: also reads the security log",
}


class ApiTokenForm(PlainForm):
    """What the token is for, what it may read, and for how many days."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=TextLine(),
        help_text="The job or the script that uses it.",
        error_messages={"required": "Write a name, so that you know the token again."},
    )
    role = forms.ChoiceField(
        label="Role",
        widget=forms.RadioSelect,
        help_text="The token never reads more than you may.",
        error_messages={"invalid_choice": "You cannot give this role. Choose one of the list."},
    )
    days = forms.IntegerField(
        label="Expires after",
        min_value=1,
        max_value=api_tokens.MAX_DAYS,
        initial=90,
        widget=WholeNumber(unit="days"),
        help_text=f"{api_tokens.MAX_DAYS:,} days at most.",
        error_messages={"required": "Write the number of days."},
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        roles = api_tokens.roles_for(user)
        self.fields["role"].choices = [(role, ROLE_WORDS[role]) for role in roles]  # type: ignore[attr-defined]
        self.initial["role"] = "operator"

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("A name is one line of printable characters.")
        if ApiToken.objects.filter(user=self.user, name=name, revoked_at=None).exists():
            raise forms.ValidationError("You have a token of this name already; choose another.")
        return name

    def save(self, *, now: datetime) -> tuple[ApiToken, str]:
        """Make the token of a valid form. Returns it with its text."""
        return api_tokens.create(
            name=self.cleaned_data["name"],
            user=self.user,
            role=self.cleaned_data["role"],
            now=now,
            expires_at=now + timedelta(days=self.cleaned_data["days"]),
        )
