"""Labels or annotations: rows of a key and a value, with buttons to add and remove one.

Without scripts the buttons send the form, and the page comes back with a row more or less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from dashboard.forms.seen import one_line_break

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
            if not key:
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
