"""The hand-over form: one of the identities that held the Lease before, or one typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from django import forms

from dashboard.forms.edit_form import HolderField, typed_holder
from dashboard.forms.release_form import TermForm
from dashboard.forms.widgets import TextLine
from dashboard.parts.holder_name import HolderView, shown_holder
from leases.domain.edit.lease_write import HandOver

ANOTHER = ""


class NextHolder(msgspec.Struct, frozen=True, kw_only=True):
    """An identity to choose; `note` says where it is known from."""

    identity: str
    view: HolderView
    note: str


class HandOverForm(TermForm):
    """`choices`: who may be chosen, besides any identity typed by hand but the present `holder`."""

    wide = frozenset({"reason", "other"})
    field_of_cause = {"spec.holderIdentity": "other", "spec.preferredHolder": "other"}

    to = HolderField(required=False, label="Next holder")
    other = HolderField(
        label="Another identity",
        required=False,
        widget=TextLine(mono=True, spellcheck="false"),
        help_text="Exactly as the process calls itself, with its suffix.",
    )

    def __init__(
        self,
        *args: Any,
        choices: Sequence[NextHolder] = (),
        holder: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.choices = choices
        self.holder = holder

    @property
    def chosen(self) -> str:
        """The radio button that is on; the first one at first."""
        if self.is_bound:
            return str(self.data.get("to", ANOTHER))
        first = self.choices[0].identity if self.choices else ANOTHER
        return str(self.initial.get("to", first))

    def clean(self) -> dict[str, Any]:
        super().clean()
        to = self.cleaned_data.get("to") or self.cleaned_data.get("other", "")
        if not to and "other" not in self.errors:
            self.add_error("other", "Name the next holder.")
        elif to and to == self.holder:
            self.add_error("other", f"{shown_holder(to)} holds it already. Choose somebody else.")
        elif to:
            try:
                self.cleaned_data["next"] = typed_holder(to)
            except forms.ValidationError as refused:
                self.add_error("other", refused)
        return self.cleaned_data

    def wanted(self) -> HandOver:
        return HandOver(self.cleaned_data["next"])
