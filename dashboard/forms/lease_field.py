"""A form field that takes a namespace or one Lease."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.forms.widgets import TextLine
from leases.wire.name_rules import label_name_errors, subdomain_errors


class LeaseField(forms.CharField):
    """Its value is (namespace, name); both are empty for all Leases, the name for a namespace."""

    def __init__(self, *, help_text: str) -> None:
        super().__init__(
            label="Namespace or Lease",
            required=False,
            max_length=317,
            widget=TextLine(mono=True, placeholder="kube-system or kube-system/scheduler"),
            help_text=help_text,
        )

    def clean(self, value: Any) -> tuple[str, str]:
        """Refuse what no Lease can match."""
        namespace, slash, name = super().clean(value).partition("/")
        wrong = (namespace or slash) and label_name_errors(namespace)
        if wrong or (name and subdomain_errors(name)):
            raise forms.ValidationError(
                "Write the name of one namespace, or namespace/name of one Lease, without patterns."
            )
        return namespace, name
