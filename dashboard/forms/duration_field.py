"""The field for leaseDurationSeconds."""

from __future__ import annotations

from django import forms

from dashboard.forms.widgets import WholeNumber
from leases.domain.lease import MAX_INT32


class DurationField(forms.IntegerField):
    """Whole seconds; empty: the Lease is untimed."""

    def __init__(self, *, help_text: str, initial: int | None = None) -> None:
        super().__init__(
            label="Duration",
            required=False,
            initial=initial,
            min_value=1,
            max_value=MAX_INT32,
            widget=WholeNumber(unit="s"),
            help_text=help_text,
            error_messages={
                "min_value": "A duration is 1 second or more.",
                "max_value": f"A duration is at most {MAX_INT32} seconds.",
                "invalid": "Write the duration as whole seconds, such as 15.",
            },
        )
