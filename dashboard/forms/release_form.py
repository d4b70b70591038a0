"""The release form: nothing but the reason, for the term that it was drawn for."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.forms.admin_form import AdminForm
from leases.domain.edit.lease_write import Release
from leases.domain.edit.term import term_of
from leases.domain.lease import Lease

LOST = "The form no longer says which Lease it was drawn for. Open it again."


class TermForm(AdminForm):
    """A form for one term. `seen_term` says which."""

    seen_term = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        if not self.cleaned_data.get("seen_term"):
            self.errors.pop("seen_term", None)
            raise forms.ValidationError(LOST)
        return self.cleaned_data

    @staticmethod
    def initial_of(lease: Lease) -> dict[str, Any]:
        return {"seen_term": term_of(lease)}


class ReleaseForm(TermForm):
    def wanted(self) -> Release:
        return Release()
