"""The form that overrides the kind of a Lease."""

from __future__ import annotations

from django import forms

from leases.domain.kind import Kind

BY_THE_RULES = ""


class LeaseKindForm(forms.Form):
    """One of the kinds, or the one that the rules decide."""

    kind = forms.ChoiceField(
        label="Kind",
        required=False,
        widget=forms.Select(attrs={"class": "select"}),
        choices=[
            (BY_THE_RULES, "as the rules decide"),
            *((kind.value, kind.value) for kind in Kind),
        ],
    )

    @property
    def wanted(self) -> Kind | None:
        """The chosen kind; None leaves it to the rules."""
        word: str = self.cleaned_data["kind"]
        return Kind(word) if word else None
