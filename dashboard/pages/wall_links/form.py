"""The form that makes a wall link."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django import forms

from dashboard.access.wall import links
from dashboard.forms.plain_form import PlainForm
from dashboard.forms.widgets import TextLine, WholeNumber
from leases.models import WallLink


class WallLinkForm(PlainForm):
    """The name of the screen, the clusters that its link opens, and for how many days."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=TextLine(),
        help_text="Where the screen hangs.",
        error_messages={"required": "Write a name, so that you know the link again."},
    )
    clusters = forms.MultipleChoiceField(
        label="Clusters",
        widget=forms.CheckboxSelectMultiple,
        help_text="The link opens only the walls of these clusters.",
        error_messages={
            "required": "Choose a cluster: a wall link opens those that it names alone.",
            "invalid_choice": "%(value)s is no cluster here. Choose one of the list.",
        },
    )
    days = forms.IntegerField(
        label="Ends after",
        required=False,
        min_value=1,
        max_value=3650,
        widget=WholeNumber(unit="days"),
        help_text="Empty: until it is revoked.",
    )

    def __init__(self, *args: Any, clusters: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = list(clusters)
        self.fields["clusters"].choices = [(name, name) for name in known]  # type: ignore[attr-defined]
        if len(known) == 1:
            self.initial["clusters"] = known

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if WallLink.objects.filter(name=name, revoked_at=None).exists():
            raise forms.ValidationError("There is a link of this name already; choose another.")
        return name

    def save(self, *, created_by: str, now: datetime) -> tuple[WallLink, str]:
        """Make the link of a valid form. Returns it with its token."""
        days = self.cleaned_data["days"]
        return links.create(
            name=self.cleaned_data["name"],
            clusters=self.cleaned_data["clusters"],
            created_by=created_by,
            now=now,
            expires_at=now + timedelta(days=days) if days else None,
        )
