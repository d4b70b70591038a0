"""The form that says what a Lease is for."""

from __future__ import annotations

from django import forms

from leases.domain.kind import Kind

BY_THE_RULES = ""


class LeaseKindForm(forms.Form):
    """One of the kinds, or what the rules make of it."""

    kind = forms.ChoiceField(
        label="Kind",
        required=False,
        widget=forms.Select(attrs={"class": "select"}),
        choices=[(BY_THE_RULES, "as the rules say"), *((kind.value, kind.value) for kind in Kind)],
    )

    @property
    def wanted(self) -> Kind | None:
        """None for the rules."""
        word: str = self.cleaned_data["kind"]
        return Kind(word) if word else None
