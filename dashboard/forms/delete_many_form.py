"""The form that deletes many Leases."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.forms.admin_form import AdminForm
from dashboard.forms.widgets import TextLine

CHANGED = (
    "The choice changed since this page was drawn: other Leases match by now, or one is held by now"
    " that was not. Look at it again, then confirm."
)


class DeleteManyForm(AdminForm):
    """The typed number, and a digest of the Leases that the page showed."""

    wide = frozenset({"typed_number", "reason"})

    typed_number = forms.CharField(
        widget=TextLine(mono=True, inputmode="numeric"),
        error_messages={"required": "Type the number of Leases to confirm."},
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput, max_length=64)

    field_order = ["typed_number", "reason"]

    def __init__(self, *args: Any, number: int, digest: str, **kwargs: Any) -> None:
        """`number` and `digest` are those of the Leases that are chosen now."""
        super().__init__(*args, saving=True, **kwargs)
        self.number, self.digest = number, digest
        self.fields["typed_number"].label = f"Type {number} to confirm"

    def clean_typed_number(self) -> str:
        typed: str = self.cleaned_data["typed_number"]
        if typed.replace(",", "") != str(self.number):
            raise forms.ValidationError(f"This is not {self.number}.")
        return typed

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("seen") != self.digest:
            raise forms.ValidationError(CHANGED)
        return self.cleaned_data
