"""The forms of a Lease that exists. An edit sends only the fields that the person touched."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from django import forms
from django.http import QueryDict

from dashboard.forms import fields
from dashboard.forms.admin_form import AdminForm
from dashboard.parts.names import HolderView, ShownName, shown_holder
from leases.actions.write_lease import Refused
from leases.domain import edit
from leases.domain.lease import Lease, ObjectName

OF_A_NEW_ONE = ("holder_identity", "duration_seconds", "strategy", "preferred_holder")
LOST = "The form no longer says which Lease it was drawn for. Open it again."


class LeaseForm(AdminForm):
    """A form that writes to one Lease; `current` is the Lease as it was read last."""

    def __init__(self, *args: Any, current: Lease | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.current = current

    @property
    def term(self) -> str:
        """The term that the form was drawn for."""
        raise NotImplementedError

    def wanted(self) -> edit.LeaseWrite:
        """The write that a valid form asks for."""
        raise NotImplementedError

    def guard(self, whole: dict[str, Any], current: Lease) -> None:
        """Refuse a Lease that is not as the form showed it."""
        if edit.term_of(current) != self.term or self.collisions(whole, current):
            raise Refused

    def collisions(self, whole: dict[str, Any], current: Lease) -> tuple[fields.Collision, ...]:
        """Return the changed fields that somebody else changed too."""
        return ()

    def rebased(self, whole: dict[str, Any], current: Lease) -> QueryDict:
        """What the same form sends for the present Lease; what was typed stays."""
        raise NotImplementedError

    def typed(self) -> list[tuple[str, str]]:
        """The label and the text of each field that the person filled in."""
        shown = (
            (bound, bound.value()) for bound in self.visible_fields() if bound.name in self.data
        )
        return [(str(bound.label), str(text)) for bound, text in shown if text]

    def as_new(self) -> dict[str, str] | None:
        """What the form of a new Lease is filled with; None if there is nothing to make anew."""
        known = fields.shown_fields(self.current) if self.current else {"duration_seconds": "15"}
        new = {name: known.get(name, "") for name in OF_A_NEW_ONE}
        pairs = (
            {part: getattr(self.current.metadata, part) for part in PAIRS} if self.current else {}
        )
        return new | pairs_as_text(pairs) | {"reason": str(self.data.get("reason", ""))}


class TermForm(LeaseForm):
    """A form for one term. `seen_term` says which."""

    seen_term = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    @property
    def term(self) -> str:
        return str(self["seen_term"].value() or "")

    def clean(self) -> dict[str, Any]:
        if not self.cleaned_data.get("seen_term"):
            self.errors.pop("seen_term", None)
            raise forms.ValidationError(LOST)
        return self.cleaned_data

    def rebased(self, whole: dict[str, Any], current: Lease) -> QueryDict:
        data = cast("QueryDict", self.data).copy()
        data["seen_term"] = edit.term_of(current)
        return data


class ReleaseForm(TermForm):
    def wanted(self) -> edit.Release:
        return edit.Release()

    def as_new(self) -> dict[str, str] | None:
        return {**(super().as_new() or {}), "holder_identity": ""}


class DeleteForm(TermForm):
    """The typed name confirms: the form previews when it is opened, and is sent to write."""

    wide = frozenset({"typed_name", "reason"})

    typed_name = forms.CharField(
        widget=fields.TextLine(mono=True, spellcheck="false"),
        error_messages={"required": "Type the name of the Lease to confirm."},
    )

    field_order = ["typed_name", "reason"]

    def __init__(self, *args: Any, key: ObjectName, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.key = key
        self.fields["typed_name"].label = f"Type {key} to confirm"
        self.fields["typed_name"].widget.attrs["data-confirm"] = str(key)

    def clean_typed_name(self) -> str:
        typed: str = self.cleaned_data["typed_name"]
        if typed != str(self.key):
            raise forms.ValidationError(f"This is not {self.key}. Type the whole name.")
        return typed

    def wanted(self) -> edit.Delete:
        return edit.Delete()

    def as_new(self) -> None:
        return None


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


class EditForm(LeaseForm):
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
        label="Acquired", help_text=f"Such as {fields.EXAMPLE}, or now."
    )
    renew_time = fields.MomentField(label="Renewed", help_text="now: the moment of writing.")
    duration_seconds = fields.DurationField(
        help_text="A dead holder is replaced after this long. Empty makes the Lease untimed."
    )
    transitions = fields.CounterField(help_text="Number of changes of holder so far.")
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

    @property
    def term(self) -> str:
        return self.was_shown.term if self.was_shown else ""

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

    def wanted(self) -> edit.FieldEdit:
        spec = {
            api: self.cleaned_data[name] if self.cleaned_data[name] != "" else None
            for name, api in API_NAMES.items()
            if self.touched(name)
        }
        labels, annotations = (self.touched_pairs(part) for part in PAIRS)
        return edit.FieldEdit(spec=spec, labels=labels, annotations=annotations)

    def collisions(self, whole: dict[str, Any], current: Lease) -> tuple[fields.Collision, ...]:
        """Return touched fields that somebody else changed."""
        seen, now, theirs = self.was_shown, fields.seen_of(current), fields.shown_fields(current)
        moved = self.term != now.term
        found = []
        for name, api in API_NAMES.items():
            yours = str(self.data.get(name, "")).strip()
            same = seen is not None and seen.fields.get(name) == now.fields[name]
            if not self.touched(name) or yours == theirs[name]:
                continue
            if not same and (moved or name not in GUARDED_BY_TERM):
                mine, other = shown_holder(yours), shown_holder(theirs[name])
                found.append(fields.Collision(name, api, mine, other, ("spec", api)))
        for part in PAIRS:
            found += self._pairs_that_collide(part, current, seen)
        return tuple(found)

    def rebased(self, whole: dict[str, Any], current: Lease) -> QueryDict:
        """Touched fields keep the typed value."""
        self.current = current
        data = QueryDict(mutable=True)
        data["reason"] = self.data.get("reason", "")
        data["seen"] = fields.seen_of(current).text
        for name, shown in fields.shown_fields(current).items():
            data[name] = self.data.get(name, "") if self.touched(name) else shown
        for part in PAIRS:
            put_pairs(data, part, self._rebased_pairs(part, current))
        return data

    def typed(self) -> list[tuple[str, str]]:
        """Only what the person changed: the form was drawn with all that the Lease said."""
        found = [one for one in super().typed() if one[0] == self.fields["reason"].label]
        changed = [(str(self.fields[name].label), name) for name in API_NAMES if self.touched(name)]
        return [(label, str(self.data.get(name, "")) or "empty") for label, name in changed] + found

    def as_new(self) -> dict[str, str] | None:
        names = [*OF_A_NEW_ONE, *filter(self.touched, ["transitions"])]  # it begins to count anew
        typed = {name: str(self.data.get(name, "")) for name in names if name in self.data}
        pairs = {part: dict(self[part].value() or ()) for part in PAIRS}
        return {**(super().as_new() or {}), **typed, **pairs_as_text(pairs)}

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
        self, part: str, current: Lease, seen: fields.Seen | None
    ) -> Iterator[fields.Collision]:
        self.current = current
        present = getattr(current.metadata, part) or {}
        shown: Mapping[str, str] = getattr(seen, part) if seen else {}
        for key, yours in self.touched_pairs(part).items():
            theirs = present.get(key)
            known = None if theirs is None else fields.digest_of_value(part, theirs)
            if yours != theirs and shown.get(fields.digest(key)) != known:
                name = _keep(part, key).removeprefix("keep-")
                sides = ["not set" if side is None else side for side in (yours, theirs)]
                path = ("metadata", part, key)
                yield fields.Collision(name, f"{part}/{key}", sides[0], sides[1], path)

    def _present(self, part: str) -> Mapping[str, str]:
        return {} if self.current is None else getattr(self.current.metadata, part) or {}


def _keep(part: str, key: str) -> str:
    return f"keep-{part}-{fields.digest(key)}"


def pairs_as_text(pairs: Mapping[str, Mapping[str, str] | None]) -> dict[str, str]:
    """As the form of a new Lease reads them; a value of several lines does not fit there."""
    return {
        part: "\n".join(
            f"{key}={value}" for key, value in (found or {}).items() if "\n" not in value
        )
        for part, found in pairs.items()
    }


def put_pairs(data: QueryDict, part: str, pairs: list[tuple[str, str]]) -> None:
    data.setlist(f"{part}-key", [key for key, _ in pairs])
    data.setlist(f"{part}-value", [value for _, value in pairs])


def initial_of(lease: Lease) -> dict[str, Any]:
    """What the form shows of a Lease."""
    pairs = {part: list((getattr(lease.metadata, part) or {}).items()) for part in PAIRS}
    return fields.shown_fields(lease) | pairs | {"seen": fields.seen_of(lease).text}


ANOTHER = ""


class NextHolder(msgspec.Struct, frozen=True):
    """An identity to choose; `note` says where it is known from, and whether it runs; `shown` is
    cut where it agrees with the others.
    """

    identity: str
    view: HolderView
    note: str
    shown: ShownName = ()


class HandOverForm(TermForm):
    """`choices`: who may be chosen, besides any identity typed by hand but the present holder."""

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
        self, *args: Any, choices: Sequence[NextHolder] = (), holder: str | None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.choices, self.holder = choices, holder

    @property
    def chosen(self) -> str | None:
        """The radio button that is on; none at first."""
        given = self.data if self.is_bound else self.initial
        return None if given.get("to") is None else str(given["to"])

    def as_new(self) -> dict[str, str] | None:
        to = str(self.data.get("to") or self.data.get("other", ""))
        return {**(super().as_new() or {}), "holder_identity": to}

    def clean(self) -> dict[str, Any]:
        super().clean()
        chosen, other = self.cleaned_data.get("to"), self.cleaned_data.get("other", "")
        to = chosen or other
        if chosen and other not in ("", chosen):
            said = f"You chose {shown_holder(chosen)} and typed another identity."
            self.add_error("other", f"{said} Empty this field, or choose “Another identity”.")
        elif not to and "other" not in self.errors:
            self.add_error("other", "Name the next holder.")
        elif to and to == self.holder:
            self.add_error("other", f"{shown_holder(to)} holds it already. Choose somebody else.")
        elif to:
            try:
                self.cleaned_data["next"] = typed_holder(to)
            except forms.ValidationError as refused:
                self.add_error("other", refused)
        return self.cleaned_data

    def wanted(self) -> edit.HandOver:
        return edit.HandOver(self.cleaned_data["next"])
