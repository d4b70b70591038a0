"""The form that makes a wall link."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms

from leases.models import WallLink


class WallLinkForm(forms.Form):
    """A name to know the screen by, and how long its link is to open the wall."""

    name = forms.CharField(label="Name", max_length=100, help_text="Where the screen hangs.")
    days = forms.IntegerField(
        label="Ends after days",
        required=False,
        min_value=1,
        max_value=3650,
        help_text="Empty: until it is revoked.",
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if WallLink.objects.filter(name=name).exists():
            raise forms.ValidationError("There is a link of this name already; choose another.")
        return name

    def save(self, *, now: datetime) -> WallLink:
        """Make the link. Call it on a valid form only."""
        days = self.cleaned_data["days"]
        return WallLink.objects.create(
            name=self.cleaned_data["name"],
            created_at=now,
            expires_at=now + timedelta(days=days) if days else None,
        )
