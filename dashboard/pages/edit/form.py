"""The edit form checks the shape; the API server's dry run decides whether values are valid."""

from __future__ import annotations

import hashlib
from typing import Any

from django import forms
from django.http import QueryDict
from msgspec import UNSET

from leases.domain.lease import Lease
from leases.domain.lease_edit import LeaseEdit, term_of

INT32_MAX = 2**31 - 1
MAX_TYPED_HOLDER = 1024
FIELD_OF_CAUSE = {
    "spec.holderIdentity": "holder_identity",
    "spec.leaseDurationSeconds": "duration_seconds",
}
_LOST = "The form no longer says which Lease it was drawn for. Open it again."


class HolderField(forms.CharField):
    """A holder; the form checks it only if it was typed, because the cluster accepts more."""

    def run_validators(self, value: Any) -> None:
        """See EditLeaseForm.clean_holder_identity."""


class EditLeaseForm(forms.Form):
    """The editable fields, the reason, and digests of what the form showed at first."""

    holder_identity = HolderField(
        label="holderIdentity",
        required=False,
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
    seen_term = forms.CharField(widget=forms.HiddenInput, max_length=64)
    seen_holder = forms.CharField(widget=forms.HiddenInput, max_length=64)
    seen_duration = forms.CharField(widget=forms.HiddenInput, max_length=64)

    @property
    def holder_touched(self) -> bool:
        return self._touched("holder_identity", "seen_holder")

    @property
    def duration_touched(self) -> bool:
        return self._touched("duration_seconds", "seen_duration")

    def clean_holder_identity(self) -> str:
        holder: str = self.cleaned_data["holder_identity"]
        if not self.holder_touched:
            return holder
        if len(holder) > MAX_TYPED_HOLDER:
            raise forms.ValidationError(f"A holder has at most {MAX_TYPED_HOLDER} characters here.")
        if not holder.isprintable():
            raise forms.ValidationError("A holder is one line of printable characters.")
        return holder

    def clean(self) -> dict[str, Any]:
        if any(name in self.errors for name in ("seen_term", "seen_holder", "seen_duration")):
            raise forms.ValidationError(_LOST)
        return self.cleaned_data

    def wanted(self) -> LeaseEdit:
        return LeaseEdit(
            holder=(self.cleaned_data["holder_identity"] or None) if self.holder_touched else UNSET,
            duration_seconds=(
                self.cleaned_data["duration_seconds"] if self.duration_touched else UNSET
            ),
        )

    def rebased(self, current: Lease) -> EditLeaseForm:
        """The same form for the present Lease; touched fields keep the typed value."""
        data = QueryDict(mutable=True)
        data.update({name: self.data.get(name, "") for name in self.fields})
        shown = initial_of(current)
        kept = {"reason"}
        kept |= {"holder_identity"} if self.holder_touched else set()
        kept |= {"duration_seconds"} if self.duration_touched else set()
        for name, value in shown.items():
            if name not in kept:
                data[name] = "" if value is None else str(value)
        return EditLeaseForm(data)

    def _touched(self, field: str, seen: str) -> bool:
        return self.is_bound and digest(self.data.get(field, "")) != self.data.get(seen)


def initial_of(lease: Lease) -> dict[str, object]:
    duration = lease.spec.lease_duration_seconds
    return {
        "holder_identity": lease.holder or "",
        "duration_seconds": duration,
        "seen_term": term_of(lease),
        "seen_holder": digest(lease.holder or ""),
        "seen_duration": digest("" if duration is None else str(duration)),
    }


def digest(text: str) -> str:
    """Digest a text as a browser sends it back: without line breaks, NUL replaced."""
    sent = text.replace("\r", "").replace("\n", "").replace("\0", "\ufffd").strip()
    return hashlib.sha256(sent.encode(errors="surrogatepass")).hexdigest()
