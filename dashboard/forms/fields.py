"""The fields and controls of forms. Each is native HTML, so that it works by keyboard.

Digests, because a holder or an annotation may be long and odd: a field whose digest differs is one
that the person changed. They compare texts as a browser sends them back.

Without scripts the buttons send the form, and the page comes back with a row more or less.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django import forms
from django.http import QueryDict

from dashboard import clock
from dashboard.lists import typed_times
from dashboard.lists.url_parameters import BadFilter
from dashboard.parts.time_range import read_typed_time
from leases.domain.edit import NOW, term_of, writer_of
from leases.domain.lease import MAX_INT32, Lease
from leases.wire.microtime import format_microtime, normal_microtime
from leases.wire.name_rules import label_name_errors, subdomain_errors


class TextLine(forms.TextInput):
    """One line; `mono` for identifiers."""

    def __init__(self, *, mono: bool = False, **attrs: Any) -> None:
        css = "input mono" if mono else "input"
        super().__init__({"class": css, "autocomplete": "off", **attrs})


class WholeNumber(forms.TextInput):
    """Digits, and the unit behind them. Text, because a number input hides what cannot be read."""

    template_name = "forms/widgets/number.html"

    def __init__(self, *, unit: str = "") -> None:
        super().__init__({"class": "input", "autocomplete": "off", "inputmode": "numeric"})
        self.unit = unit

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        return super().get_context(name, value, attrs) | {"unit": self.unit}


class Moment(forms.TextInput):
    """A time, and a button that sets it to the word `now`.

    Without scripts the button sends the form, and the page comes back with the word in the field.
    """

    template_name = "forms/widgets/moment.html"

    def __init__(self) -> None:
        super().__init__({"class": "input mono", "autocomplete": "off", "spellcheck": "false"})


class Area(forms.Textarea):
    """Several lines."""

    def __init__(self, *, mono: bool = False, rows: int = 3, **attrs: Any) -> None:
        css = "textarea mono" if mono else "textarea"
        super().__init__({"class": css, "rows": rows, **attrs})


class Dropdown(forms.Select):
    def __init__(self) -> None:
        super().__init__({"class": "select"})


MAX_NUMBERED = 10_000  # lines


class YamlEditor(forms.Textarea):
    """A text with line numbers; those of `bad_lines` are marked."""

    template_name = "forms/widgets/yaml.html"

    def __init__(self) -> None:
        super().__init__(
            {"class": "textarea mono", "rows": 24, "spellcheck": "false", "wrap": "off"}
        )
        self.bad_lines: set[int] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> YamlEditor:
        """Each form has a copy; Django would share the marked lines among all of them."""
        copied: YamlEditor = super().__deepcopy__(memo)
        copied.bad_lines = set()
        return copied

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        count = min(MAX_NUMBERED, str(value or "").count("\n") + 1)
        numbers = [(number, number in self.bad_lines) for number in range(1, count + 1)]
        return super().get_context(name, value, attrs) | {"numbers": numbers}


class Collision(msgspec.Struct, frozen=True):
    """`name` is the field of the form, `field` its name in the API and `path` its path."""

    name: str
    field: str
    yours: str
    theirs: str
    path: tuple[str, ...] = ()

    @property
    def nothing(self) -> str:
        """What an empty side says."""
        return "nobody" if self.path == ("spec", "holderIdentity") else "not set"


def writers_of(collisions: Iterable[Collision], lease: dict[str, Any]) -> list[str]:
    """Say who wrote the other sides, as managedFields tells."""
    said = []
    for one in collisions:
        writer = writer_of(lease, one.path)
        if writer and writer.manager:
            at = f" at {writer.time[11:19]}" if writer.time else ""
            said.append(f"{writer.manager} wrote {one.field}{at}.")
    return list(dict.fromkeys(said))


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


class CounterField(forms.IntegerField):
    """leaseTransitions."""

    def __init__(self, *, help_text: str) -> None:
        super().__init__(
            label="Transitions",
            required=False,
            min_value=0,
            max_value=MAX_INT32,
            widget=WholeNumber(),
            help_text=help_text,
            error_messages={
                "min_value": "The counter is 0 or more.",
                "max_value": f"The counter is at most {MAX_INT32}.",
                "invalid": "Write the counter as a whole number, such as 214.",
            },
        )


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


class EndField(forms.CharField):
    """When something ends that is made now: a number of days, a length, or a time to come."""

    def __init__(self, *, most_days: int, **kwargs: Any) -> None:
        line = TextLine(placeholder="90 d, 12 h or 22:00")
        super().__init__(max_length=64, widget=line, **kwargs)
        self._most = most_days

    def clean(self, value: Any) -> datetime | None:
        text, now = super().clean(value), clock.now()
        days = re.fullmatch(r"(\d{1,6})\s*(?:d|days?)?", text, re.ASCII)
        if not text:
            return None
        try:
            end = (
                now + timedelta(days=int(days[1]))
                if days
                else read_typed_time(text, "", now, ahead=True)
            )
        except BadFilter:
            end = now
        if end is None or not now < end <= now + timedelta(days=self._most):
            raise forms.ValidationError(
                f"Write days from 1 to {self._most:,}, a length such as 12 h, or a time to come "
                "in UTC, such as 22:00."
            )
        return end


class ZoneField(forms.ChoiceField):
    """UTC, the zone of the browser, or one of IANA."""

    def __init__(self, *, help_text: str) -> None:
        first = [(typed_times.UTC_ZONE, "UTC"), (typed_times.LOCAL, "that of the browser")]
        named = [(name, name.replace("_", " ")) for name in typed_times.zone_names()[1:]]
        super().__init__(
            label="Time zone",
            choices=[*first, *named],
            initial=typed_times.UTC_ZONE,
            required=False,
            widget=Dropdown(),
            help_text=help_text,
            error_messages={"invalid_choice": "There is no zone %(value)s. Choose from the list."},
        )

    def clean(self, value: Any) -> str:
        return str(super().clean(value)) or typed_times.UTC_ZONE


EXAMPLE = "2026-11-20T12:04:22.204117Z"
_SHAPE = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-]\d\d:\d\d)?"
)


class MomentField(forms.CharField):
    """Cleans to the canonical text of a MicroTime, to NOW, or to ""."""

    widget = Moment

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=64, **kwargs)

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        if not text or text.lower() == NOW:
            return text.lower()
        shape = _SHAPE.fullmatch(text)
        if shape is None and "-" in text:  # a moment, and no MicroTime
            raise forms.ValidationError(_advice())
        if shape is None:
            try:
                return format_microtime(read_typed_time(text, "", clock.now()) or clock.now())
            except BadFilter:
                raise forms.ValidationError(_advice()) from None
        day, minute, second, fraction, zone = shape.groups()
        micros = (fraction or "").ljust(6, "0")[:6]
        written = f"{day}T{minute}:{second or '00'}.{micros}"
        try:
            if zone is None and typed_times.has_zone():
                moment = typed_times.in_utc_of(datetime.fromisoformat(written))
                return format_microtime(moment)
            normal = normal_microtime(f"{written}{(zone or 'Z').upper()}")
        except (ValueError, OverflowError):
            raise forms.ValidationError(_advice("There is no such moment. ")) from None
        if normal is None:
            raise forms.ValidationError("The API reads this time as none: leave the field empty.")
        return normal


def _advice(reason: str = "") -> str:
    return f"{reason}Write a time such as {EXAMPLE} or 04:30, or the word {NOW}."


LONGEST = 16  # hex digits of a digest
MAX_PAIRS = 150  # labels or annotations in a form; Django accepts 1,000 fields


class Seen(msgspec.Struct, frozen=True):
    """`labels` and `annotations`: digest of the key to digest of the value."""

    term: str
    fields: dict[str, str]
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def text(self) -> str:
        """For the hidden field of the form."""
        return msgspec.json.encode(self).decode()


def read_seen(text: str) -> Seen | None:
    """None if the text is not what `Seen.text` wrote."""
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=Seen)
    except msgspec.MsgspecError:
        return None


def seen_of(lease: Lease) -> Seen:
    return Seen(
        term=term_of(lease),
        fields={name: digest(text) for name, text in shown_fields(lease).items()},
        labels=_of_pairs(lease.metadata.labels, "labels"),
        annotations=_of_pairs(lease.metadata.annotations, "annotations"),
    )


def shown_fields(lease: Lease) -> dict[str, str]:
    """The spec as the fields of a form show it; "" for what is not set."""
    spec = lease.spec
    values = {
        "holder_identity": lease.holder,
        "acquire_time": spec.acquire_time and format_microtime(spec.acquire_time),
        "renew_time": spec.renew_time and format_microtime(spec.renew_time),
        "duration_seconds": spec.lease_duration_seconds,
        "transitions": spec.lease_transitions,
        "strategy": spec.strategy,
        "preferred_holder": spec.preferred_holder,
    }
    return {name: "" if value is None else str(value) for name, value in values.items()}


def digest(text: str, *, lines: bool = False) -> str:
    """Digest a text as a browser sends it back: NUL replaced, line breaks kept if it has `lines`
    and left out otherwise.
    """
    sent = text.replace("\0", "\ufffd")
    sent = one_line_break(sent) if lines else sent.replace("\r", "").replace("\n", "").strip()
    return hashlib.sha256(sent.encode(errors="surrogatepass")).hexdigest()[:LONGEST]


def one_line_break(text: str) -> str:
    """With line feeds alone, as a browser's script reads a <textarea>."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def digest_of_value(part: str, value: str) -> str:
    """Digest a value of "labels" or "annotations": only an annotation may have several lines."""
    return digest(value, lines=part == "annotations")


def _of_pairs(pairs: Mapping[str, str] | None, part: str) -> dict[str, str]:
    return {digest(key): digest_of_value(part, value) for key, value in (pairs or {}).items()}


Pair = tuple[str, str]


class PairsInput(forms.Widget):
    """Reads `<name>-key` and `<name>-value`, which come as often as there are rows."""

    template_name = "forms/widgets/pairs.html"
    use_fieldset = True

    def __init__(self, *, noun: str, lines: bool) -> None:
        super().__init__()
        self.noun, self.lines = noun, lines

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        return context | {"pairs": list(value or ()), "noun": self.noun, "lines": self.lines}

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[Pair]:
        if not isinstance(data, QueryDict):
            return list(data.get(name, ()))
        keys, values = data.getlist(f"{name}-key"), data.getlist(f"{name}-value")
        return [(key.strip(), value) for key, value in zip(keys, values, strict=False)]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return False

    def id_for_label(self, id_: str) -> str:
        return ""


class PairsField(forms.Field):
    """Cleans to a dict. A row without key and value is left out."""

    def __init__(self, *, noun: str, lines: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, widget=PairsInput(noun=noun, lines=lines), **kwargs)
        self.noun = noun

    def clean(self, value: Sequence[Pair]) -> dict[str, str]:
        found: dict[str, str] = {}
        problems = []
        for key, text in value:
            if not key and not text:
                continue
            if "\0" in key + text:
                problems.append(f"Leave out the NUL character of the {self.noun} {key[:40]!r}.")
            elif not key:
                problems.append(f"The {self.noun} with the value {text[:40]!r} has no key.")
            elif key in found:
                problems.append(f"The {self.noun} {key} is there twice. Remove one.")
            found[key] = one_line_break(text)
        if problems:
            raise forms.ValidationError(problems)
        return found


def press(data: QueryDict) -> QueryDict | None:
    """Return the data after a button of a row or a time was pressed; None if none was.

    The buttons are `add=<field>`, `remove=<field>-<row>` and `now=<field>`.
    """
    changed = data.copy()
    if name := data.get("now"):
        changed[name] = "now"
    elif name := data.get("add"):
        changed.appendlist(f"{name}-key", "")
        changed.appendlist(f"{name}-value", "")
    elif "remove" in data:
        name, _, number = str(data["remove"]).rpartition("-")
        for part in ("key", "value"):
            texts = changed.getlist(f"{name}-{part}")
            kept = [text for row, text in enumerate(texts) if str(row) != number]
            changed.setlist(f"{name}-{part}", kept)
    else:
        return None
    return changed
