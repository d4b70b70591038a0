"""The forms of a Lease that exists: edit, hand over, release. Only touched fields are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from django import forms
from django.http import QueryDict

from dashboard.forms import fields
from dashboard.forms.admin_form import AdminForm
from dashboard.parts.names import HolderView, shown_holder
from leases.domain.edit import FieldEdit, HandOver, Release, term_of
from leases.domain.lease import MAX_INT32, Lease

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


MAX_TYPED_HOLDER = 1024
API_NAMES = {
    "holder_identity": "holderIdentity",
    "acquire_time": "acquireTime",
    "renew_time": "renewTime",
    "duration_seconds": "leaseDurationSeconds",
    "transitions": "leaseTransitions",
    "strategy": "strategy",
    "preferred_holder": "preferredHolder",
}
PAIRS = ("labels", "annotations")
# Of these the term tells whether somebody else wrote them: a holder renews all the time.
GUARDED_BY_TERM = ("acquire_time", "renew_time", "transitions")
THEIRS = "theirs"


class HolderField(forms.CharField):
    """A holder; the form checks it only if it was typed, because the cluster accepts more."""

    def run_validators(self, value: Any) -> None:
        """See `typed_holder`."""


def typed_holder(holder: str) -> str:
    """Return a holder that a person typed. Raises ValidationError."""
    if len(holder) > MAX_TYPED_HOLDER:
        raise forms.ValidationError(f"A holder has at most {MAX_TYPED_HOLDER} characters here.")
    if not holder.isprintable():
        raise forms.ValidationError("A holder is one line of printable characters.")
    return holder


class EditForm(AdminForm):
    """Bound to what was sent, it knows which fields the person touched since it was drawn."""

    api_names = API_NAMES
    wide = frozenset({"reason", "holder_identity", "labels", "annotations"})
    field_of_cause = {f"spec.{api}": name for name, api in API_NAMES.items()} | {
        f"metadata.{name}": name for name in PAIRS
    }

    holder_identity = HolderField(
        label="Holder",
        required=False,
        widget=fields.TextLine(mono=True, spellcheck="false"),
        help_text="Empty names nobody. Whoever is named must run, or nobody acts until it expires.",
    )
    acquire_time = fields.MomentField(
        label="Acquired", help_text=f"UTC, such as {fields.EXAMPLE}, or now."
    )
    renew_time = fields.MomentField(label="Renewed", help_text="now: the moment of writing.")
    duration_seconds = fields.DurationField(
        help_text="A dead holder is replaced after this long. Empty makes the Lease untimed."
    )
    transitions = forms.IntegerField(
        label="Transitions",
        required=False,
        min_value=0,
        max_value=MAX_INT32,
        widget=fields.WholeNumber(),
        help_text="Number of changes of holder so far.",
        error_messages={
            "min_value": "The counter is 0 or more.",
            "max_value": f"The counter is at most {MAX_INT32}.",
            "invalid": "Write the counter as a whole number, such as 214.",
        },
    )
    strategy = forms.CharField(
        label="Strategy",
        required=False,
        max_length=MAX_TYPED_HOLDER,
        widget=fields.TextLine(mono=True, list="strategies", spellcheck="false"),
        help_text="OldestEmulationVersion: the API server elects the holder.",
    )
    preferred_holder = forms.CharField(
        label="Preferred holder",
        required=False,
        max_length=MAX_TYPED_HOLDER,
        widget=fields.TextLine(mono=True, spellcheck="false"),
        help_text="The next holder of a coordinated election. Needs a strategy.",
    )
    labels = fields.PairsField(label="Labels", noun="label")
    annotations = fields.PairsField(label="Annotations", noun="annotation", lines=True)
    seen = forms.CharField(required=False, widget=forms.HiddenInput, strip=False)

    current: Lease | None = None  # the Lease as it was read last

    @property
    def was_shown(self) -> fields.Seen | None:
        return fields.read_seen(self.data.get("seen", "")) if self.is_bound else None

    @property
    def too_many(self) -> tuple[str, ...]:
        """The parts with more entries than the form shows."""
        seen = fields.read_seen(str(self["seen"].value() or ""))
        return tuple(part for part in PAIRS if seen and len(getattr(seen, part)) > fields.MAX_PAIRS)

    def touched(self, name: str) -> bool:
        """Whether the person changed this field of the spec, and keeps the change."""
        seen = self.was_shown
        if seen is None or self.data.get(f"keep-{name}") == THEIRS:
            return False
        return fields.digest(self.data.get(name, "")) != seen.fields.get(name)

    def touched_pairs(self, part: str) -> dict[str, str | None]:
        """Return the keys that the person set, and (None) those that he removed.

        Call it on a valid form. A key that the present Lease does not have cannot be removed.
        """
        seen = self.was_shown
        shown: Mapping[str, str] = getattr(seen, part) if seen else {}
        if seen is None or len(shown) > fields.MAX_PAIRS:  # then the form shows none of them
            return {}
        typed: dict[str, str] = self.cleaned_data[part]
        found: dict[str, str | None] = {
            key: value
            for key, value in typed.items()
            if shown.get(fields.digest(key)) != fields.digest_of_value(part, value)
        }
        sent = {fields.digest(key) for key in typed}
        found |= {
            key: None for key in self._present(part) if fields.digest(key) in shown.keys() - sent
        }
        kept = (key for key in found if self.data.get(_keep(part, key)) != THEIRS)
        return {key: found[key] for key in kept}

    def clean_holder_identity(self) -> str:
        holder: str = self.cleaned_data["holder_identity"]
        return typed_holder(holder) if self.touched("holder_identity") else holder

    def clean(self) -> dict[str, Any]:
        if self.was_shown is None:
            self.errors.clear()
            raise forms.ValidationError(LOST)
        for name in API_NAMES:
            if not self.touched(name):
                self.errors.pop(name, None)
        return self.cleaned_data

    def wanted(self) -> FieldEdit:
        spec = {
            api: self.cleaned_data[name] if self.cleaned_data[name] != "" else None
            for name, api in API_NAMES.items()
            if self.touched(name)
        }
        labels, annotations = (self.touched_pairs(part) for part in PAIRS)
        return FieldEdit(spec=spec, labels=labels, annotations=annotations)

    def collisions(self, current: Lease, *, moved: bool) -> tuple[fields.Collision, ...]:
        """Return the touched fields that somebody else changed; after a move, all that differ."""
        seen, now, theirs = self.was_shown, fields.seen_of(current), fields.shown_fields(current)
        found = []
        for name, api in API_NAMES.items():
            yours = str(self.data.get(name, "")).strip()
            same = seen is not None and seen.fields.get(name) == now.fields[name]
            if not self.touched(name) or yours == theirs[name]:
                continue
            if moved or not (same or name in GUARDED_BY_TERM):
                mine, other = shown_holder(yours), shown_holder(theirs[name])
                found.append(fields.Collision(name, api, mine, other, ("spec", api)))
        for part in PAIRS:
            found += self._pairs_that_collide(part, current, seen, moved=moved)
        return tuple(found)

    def rebased(self, current: Lease) -> EditForm:
        """The same form for the present Lease; touched fields keep the typed value."""
        self.current = current
        data = QueryDict(mutable=True)
        data["reason"] = self.data.get("reason", "")
        data["seen"] = fields.seen_of(current).text
        for name, shown in fields.shown_fields(current).items():
            data[name] = self.data.get(name, "") if self.touched(name) else shown
        for part in PAIRS:
            put_pairs(data, part, self._rebased_pairs(part, current))
        form = EditForm(data)
        form.current = current
        return form

    def changed_from(self) -> Mapping[str, str]:
        """What the Lease says now in each touched field."""
        if self.current is None or not self.is_bound:
            return {}
        shown = fields.shown_fields(self.current)
        return {name: shown_holder(shown[name]) for name in API_NAMES if self.touched(name)}

    def _rebased_pairs(self, part: str, current: Lease) -> list[tuple[str, str]]:
        present = dict(getattr(current.metadata, part) or {})
        for key, value in self.touched_pairs(part).items():
            if value is None:
                present.pop(key, None)
            else:
                present[key] = value
        return list(present.items())

    def _pairs_that_collide(
        self, part: str, current: Lease, seen: fields.Seen | None, *, moved: bool
    ) -> Iterator[fields.Collision]:
        self.current = current
        present = getattr(current.metadata, part) or {}
        shown: Mapping[str, str] = getattr(seen, part) if seen else {}
        for key, yours in self.touched_pairs(part).items():
            theirs = present.get(key)
            known = None if theirs is None else fields.digest_of_value(part, theirs)
            if yours != theirs and (moved or shown.get(fields.digest(key)) != known):
                name = _keep(part, key).removeprefix("keep-")
                sides = ["not set" if side is None else side for side in (yours, theirs)]
                path = ("metadata", part, key)
                yield fields.Collision(name, f"{part}/{key}", sides[0], sides[1], path)

    def _present(self, part: str) -> Mapping[str, str]:
        return {} if self.current is None else getattr(self.current.metadata, part) or {}


def _keep(part: str, key: str) -> str:
    return f"keep-{part}-{fields.digest(key)}"


def put_pairs(data: QueryDict, part: str, pairs: list[tuple[str, str]]) -> None:
    data.setlist(f"{part}-key", [key for key, _ in pairs])
    data.setlist(f"{part}-value", [value for _, value in pairs])


def initial_of(lease: Lease) -> dict[str, Any]:
    """What the form shows of a Lease."""
    pairs = {part: list((getattr(lease.metadata, part) or {}).items()) for part in PAIRS}
    return fields.shown_fields(lease) | pairs | {"seen": fields.seen_of(lease).text}


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
        widget=fields.TextLine(mono=True, spellcheck="false"),
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
