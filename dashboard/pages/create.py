"""Create a Lease: the form, its dry run, and the way to the new Lease."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from dashboard.forms.edit_form import MAX_TYPED_HOLDER, LeaseForm
from dashboard.forms.fields import Area, CounterField, DurationField, TextLine
from dashboard.forms.form_page import ActionPage, form_view
from dashboard.forms.what_happens import of_create
from dashboard.parts.cluster_write_access import WriteAccess, may_write
from dashboard.parts.lease_head import to_yaml, without_managed_fields
from dashboard.parts.names import cluster_path, holder_view, lease_url
from leases.actions.audit import DONE
from leases.actions.write_lease import DryRun
from leases.domain.edit import NewLease
from leases.domain.lease import MAX_NAME, MAX_NAMESPACE, ObjectName, number_of
from leases.history import find_changes
from leases.models import Edit
from leases.wire.name_rules import label_name_errors, subdomain_errors
from leases.wire.status import AlreadyExists, ApiError, NotFound

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+")


class CreateLeaseForm(LeaseForm):
    """The namespace and the name, and what a Lease says first."""

    api_names = {
        "namespace": "metadata.namespace",
        "name": "metadata.name",
        "holder_identity": "holderIdentity",
        "duration_seconds": "leaseDurationSeconds",
        "transitions": "leaseTransitions",
        "strategy": "strategy",
        "preferred_holder": "preferredHolder",
        "labels": "metadata.labels",
        "annotations": "metadata.annotations",
    }
    wide = frozenset({"holder_identity", "reason"})
    field_of_cause = {api if "." in api else f"spec.{api}": name for name, api in api_names.items()}

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
    transitions = CounterField(help_text="Empty: it begins to count at 0 with its first holder.")
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

    field_order = [*api_names, "reason"]

    def clean_namespace(self) -> str:
        return _checked(self.cleaned_data["namespace"], label_name_errors, signs="digits and “-”")

    def clean_name(self) -> str:
        return _checked(self.cleaned_data["name"], subdomain_errors, signs="digits, “-” and “.”")

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
            transitions=typed["transitions"],
            strategy=typed["strategy"],
            preferred_holder=typed["preferred_holder"],
            labels=typed["labels"],
            annotations=typed["annotations"],
        )


def _checked(name: str, errors: Callable[[str], Sequence[str]], *, signs: str) -> str:
    """Return a good name. Raises ValidationError, which says `Try ledger-writer.` where it can."""
    if not errors(name):
        return name
    good = _NOT_IN_NAMES.sub("-", name.lower())
    if "." not in signs:
        good = good.replace(".", "-")
    good = re.sub(r"[-.]*\.[-.]*", ".", good).strip("-.")
    raise forms.ValidationError(
        f"Small letters, {signs} only, and a letter or digit at both ends."
        + (f" Try {good}." if good else "")
    )


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


LOOKS, LOOK_SECONDS = 100, 0.05  # the watch usually reports a write within this time
FILLED_BY_URL = ("namespace", "name", "holder_identity", "duration_seconds")


class CreatePage(ActionPage[CreateLeaseForm]):
    template = "create/index.html"
    form_class = CreateLeaseForm
    asks_before_writing = False

    def initial(self) -> dict[str, Any]:
        given = self.request.GET
        return {name: given[name] for name in FILLED_BY_URL if name in given}

    def key_of(self, form: CreateLeaseForm) -> ObjectName:
        return form.wanted().key

    async def access(self, form: CreateLeaseForm) -> WriteAccess | None:
        namespace = form["namespace"].value()
        if not namespace:
            return None
        return await may_write(self.cluster, self.user, namespace, "create")

    def context(
        self, form: CreateLeaseForm, verdict: DryRun | None, *, quiet: bool
    ) -> dict[str, Any]:
        preview = None if verdict is None else _preview(form.wanted(), verdict)
        return {"preview": preview, "namespaces": self.cluster.store.namespaces()[:500]}

    async def refused(self, form: CreateLeaseForm, error: ApiError) -> HttpResponse:
        if not isinstance(error, AlreadyExists):
            return await super().refused(form, error)
        key = form.wanted().key
        known = self.cluster.store.get(key)
        exists = {
            "key": str(key),
            "url": lease_url(self.cluster.name, key),
            "holder": holder_view(known.holder) if known else None,
            "known": known is not None,
        }
        return await self.draw(form, exists=exists, status=409)

    async def written(self, row: Edit) -> HttpResponse:
        """Lead to the new Lease, once the watch has reported it."""
        if row.outcome != DONE:
            return await super().written(row)
        key = ObjectName(row.namespace, row.name)
        version = number_of(row.resource_version)
        for _ in range(LOOKS):
            if await sync_to_async(self._shows)(key, version):
                text, url = f"{key} was created.", lease_url(self.cluster.name, key)
                break
            await asyncio.sleep(LOOK_SECONDS)
        else:
            text = f"{key} was created. The list shows it once the cluster reports it."
            url = cluster_path("leases", self.cluster.name)
        await sync_to_async(messages.success)(self.request, text)
        return redirect(url)

    def _shows(self, key: ObjectName, version: int) -> bool:
        """Whether the page of the Lease shows it as it was created or later: its state comes from
        the watch, its terms from history, which may have those of an earlier Lease of this name.
        """
        tracked = self.cluster.store.get(key)
        if tracked is None or number_of(tracked.resource_version) < version:
            return False
        found = find_changes.of_lease(self.cluster.name, key.namespace, key.name, 1)
        return bool(found) and number_of(found[0].resource_version) >= version


def _preview(new: NewLease, verdict: DryRun) -> dict[str, Any]:
    after = without_managed_fields(verdict.after)
    for made_anew in ("uid", "creationTimestamp"):  # those of the dry run will not be the real
        after["metadata"].pop(made_anew, None)
    kept = after.get("spec") or {}
    return {
        "yaml": to_yaml(after),
        "dropped": [name for name in verdict.sent["spec"] if name not in kept],
        "warnings": verdict.warnings,
        "means": of_create(new, kept=kept),
    }


new_lease = form_view(CreatePage)
