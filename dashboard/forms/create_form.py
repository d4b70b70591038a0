"""The form that creates a Lease."""

import re
from typing import Any

from django import forms

from dashboard.forms.admin_form import AdminForm
from dashboard.forms.fields import Area, DurationField, TextLine
from leases.actions.write_lease import NewLease
from leases.domain.lease import MAX_NAME, MAX_NAMESPACE, ObjectName
from leases.wire.name_rules import label_name_errors, subdomain_errors
from leases.wire.status import ApiError, NotFound

MAX_TYPED_HOLDER = 1024
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+")


class CreateLeaseForm(AdminForm):
    """The namespace and the name, and what a Lease says first."""

    api_names = {
        "namespace": "metadata.namespace",
        "name": "metadata.name",
        "holder_identity": "holderIdentity",
        "duration_seconds": "leaseDurationSeconds",
        "strategy": "strategy",
        "preferred_holder": "preferredHolder",
        "labels": "metadata.labels",
        "annotations": "metadata.annotations",
    }
    wide = frozenset({"holder_identity", "reason"})
    field_of_cause = {
        "metadata.namespace": "namespace",
        "metadata.name": "name",
        "metadata.labels": "labels",
        "metadata.annotations": "annotations",
        "spec.holderIdentity": "holder_identity",
        "spec.leaseDurationSeconds": "duration_seconds",
        "spec.strategy": "strategy",
        "spec.strategy.strategy": "strategy",  # the API server names it so
        "spec.preferredHolder": "preferred_holder",
    }

    namespace = forms.CharField(
        label="Namespace",
        max_length=MAX_NAMESPACE,
        widget=TextLine(mono=True, spellcheck="false", list="namespaces"),
        error_messages={"required": "Say in which namespace the Lease is to be."},
    )
    name = forms.CharField(
        label="Name",
        max_length=MAX_NAME,
        widget=TextLine(mono=True, spellcheck="false"),
        error_messages={"required": "Give the Lease a name."},
    )
    holder_identity = forms.CharField(
        label="Holder",
        required=False,
        max_length=MAX_TYPED_HOLDER,
        widget=TextLine(
            mono=True, spellcheck="false", placeholder="Empty: vacant, anyone may take it"
        ),
        help_text="Whoever is named here must really run, or nobody acts until the Lease expires.",
    )
    duration_seconds = DurationField(initial=15, help_text="Empty: untimed, it never runs out.")
    strategy = forms.CharField(
        label="Strategy",
        required=False,
        max_length=255,
        widget=TextLine(mono=True, spellcheck="false", list="strategies"),
        help_text="With OldestEmulationVersion the API server chooses the holder.",
    )
    preferred_holder = forms.CharField(
        label="Preferred holder",
        required=False,
        max_length=MAX_TYPED_HOLDER,
        widget=TextLine(mono=True, spellcheck="false"),
        help_text="Only together with a strategy.",
    )
    labels = forms.CharField(
        label="Labels",
        required=False,
        strip=False,
        widget=Area(mono=True, rows=2, placeholder="key=value, key=value"),
    )
    annotations = forms.CharField(
        label="Annotations",
        required=False,
        strip=False,
        widget=Area(mono=True, rows=2, placeholder="key=value, one on each line"),
    )

    field_order = [
        "namespace",
        "name",
        "holder_identity",
        "duration_seconds",
        "strategy",
        "preferred_holder",
        "labels",
        "annotations",
        "reason",
    ]

    def clean_namespace(self) -> str:
        namespace: str = self.cleaned_data["namespace"]
        if label_name_errors(namespace):
            rule = "Small letters, digits and “-” only, and a letter or digit at both ends."
            raise forms.ValidationError(f"{rule}{_suggested(namespace.replace('.', '-'))}")
        return namespace

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if subdomain_errors(name):
            rule = "Small letters, digits, “-” and “.” only, and a letter or digit at both ends."
            raise forms.ValidationError(f"{rule}{_suggested(name)}")
        return name

    def clean_holder_identity(self) -> str:
        return _one_line(self.cleaned_data["holder_identity"], "A holder")

    def clean_preferred_holder(self) -> str:
        return _one_line(self.cleaned_data["preferred_holder"], "A preferred holder")

    def clean_labels(self) -> dict[str, str]:
        return _pairs(re.split(r"[,\n]", self.cleaned_data["labels"]), "label")

    def clean_annotations(self) -> dict[str, str]:
        return _pairs(self.cleaned_data["annotations"].split("\n"), "annotation")

    def place(self, error: ApiError) -> str:
        """Also: the namespace that does not exist belongs to its field."""
        details = error.status.details
        if isinstance(error, NotFound) and details is not None and details.kind == "namespaces":
            self.add_error("namespace", "There is no such namespace in this cluster.")
            return ""
        return super().place(error)

    def wanted(self) -> NewLease:
        """The Lease of a valid form."""
        typed: dict[str, Any] = self.cleaned_data
        return NewLease(
            key=ObjectName(typed["namespace"], typed["name"]),
            holder=typed["holder_identity"],
            duration_seconds=typed["duration_seconds"],
            strategy=typed["strategy"],
            preferred_holder=typed["preferred_holder"],
            labels=typed["labels"],
            annotations=typed["annotations"],
        )


def _suggested(name: str) -> str:
    """` Try ledger-writer.`, if the typed name has anything to make a good one of."""
    good = _NOT_IN_NAMES.sub("-", name.lower())
    good = re.sub(r"[-.]*\.[-.]*", ".", good).strip("-.")
    return f" Try {good}." if good else ""


def _one_line(text: str, what: str) -> str:
    if not text.isprintable():
        raise forms.ValidationError(f"{what} is one line without control characters.")
    return text


def _pairs(lines: list[str], what: str) -> dict[str, str]:
    """Read `key=value` pairs. Whether keys and values are good is for the API server to say."""
    found: dict[str, str] = {}
    for line in lines:
        key, equals, value = (part.strip() for part in line.strip().partition("="))
        if not (key or equals):
            continue
        if not (key and equals):
            raise forms.ValidationError(f"Write each {what} as key=value; {line.strip()!r} is not.")
        if key in found:
            raise forms.ValidationError(f"The {what} {key} is there twice.")
        found[key] = value
    return found
