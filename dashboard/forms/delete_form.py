"""The form that deletes one Lease."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.forms.admin_form import AdminForm
from dashboard.forms.widgets import TextLine
from leases.domain.edit.term import term_of
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
