"""The forms that delete one Lease, or many."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.forms.admin_form import AdminForm
from dashboard.forms.fields import TextLine
from leases.domain.edit import term_of
from leases.domain.lease import Lease, ObjectName


class DeleteLeaseForm(AdminForm):
    """The typed name, and a digest of the term that the form showed."""

    wide = frozenset({"typed_name", "reason"})

    typed_name = forms.CharField(
        widget=TextLine(mono=True, spellcheck="false"),
        error_messages={"required": "Type the name of the Lease to confirm."},
    )
    seen_term = forms.CharField(widget=forms.HiddenInput, max_length=64)

    field_order = ["typed_name", "reason"]

    def __init__(self, *args: Any, key: ObjectName, **kwargs: Any) -> None:
        super().__init__(*args, saving=True, **kwargs)
        self.key = key
        self.fields["typed_name"].label = f"Type {key} to confirm"
        self.fields["typed_name"].widget.attrs["data-confirm"] = str(key)

    @property
    def typed(self) -> dict[str, str]:
        return {name: self.data.get(name, "") for name in self.fields}

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != str(self.key):
            raise forms.ValidationError(f"This is not {self.key}. Type the whole name.")
        return typed

    def clean(self) -> dict[str, Any]:
        if "seen_term" not in self.cleaned_data:
            text = "The form no longer says which Lease it was drawn for. Open it again."
            raise forms.ValidationError(text)
        return self.cleaned_data

    def rebased(self, current: Lease) -> DeleteLeaseForm:
        """The same form for the present term; the typed texts stay."""
        return DeleteLeaseForm({**self.typed, "seen_term": term_of(current)}, key=self.key)


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
