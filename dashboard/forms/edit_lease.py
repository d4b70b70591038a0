"""The edit form: shape only; the API server's dry run has the last word."""

from __future__ import annotations

from django import forms

from leases.domain.edit import Edit
from leases.domain.lease import Lease

INT32_MAX = 2**31 - 1
FIELD_OF_CAUSE = {
    "spec.holderIdentity": "holder_identity",
    "spec.leaseDurationSeconds": "duration_seconds",
}


class EditLeaseForm(forms.Form):
    """What an admin may change by hand, the term the form was drawn for, and why."""

    holder_identity = forms.CharField(
        label="holderIdentity",
        required=False,
        max_length=1024,
        help_text="Empty releases the Lease.",
    )
    duration_seconds = forms.IntegerField(
        label="leaseDurationSeconds",
        required=False,
        min_value=1,
        max_value=INT32_MAX,
        help_text="Whole seconds that a renewal lasts. Empty makes the Lease untimed.",
        error_messages={
            "min_value": "A duration is 1 second or more.",
            "max_value": f"A duration is at most {INT32_MAX} seconds.",
            "invalid": "Write the duration as whole seconds, such as 15.",
        },
    )
    reason = forms.CharField(
        label="Reason",
        max_length=500,
        help_text="Kept in the audit trail.",
        error_messages={"required": "Say why; the reason is kept in the audit trail."},
    )
    seen_term = forms.CharField(widget=forms.HiddenInput, max_length=2000)

    def clean_holder_identity(self) -> str:
        holder: str = self.cleaned_data["holder_identity"]
        if not holder.isprintable():
            raise forms.ValidationError("A holder is one line of printable characters.")
        return holder

    def wanted(self) -> Edit:
        """The cleaned fields as an edit."""
        return Edit(
            holder=self.cleaned_data["holder_identity"] or None,
            duration_seconds=self.cleaned_data["duration_seconds"],
        )


def initial_of(lease: Lease, *, term: str) -> dict[str, object]:
    """What the form begins with."""
    return {
        "holder_identity": lease.holder or "",
        "duration_seconds": lease.spec.lease_duration_seconds,
        "seen_term": term,
    }
