"""The controls of the forms. Each is native HTML, so that it works by keyboard and without
scripts."""

from __future__ import annotations

from typing import Any

from django import forms


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
        count = str(value or "").count("\n") + 1
        numbers = [(number, number in self.bad_lines) for number in range(1, count + 1)]
        return super().get_context(name, value, attrs) | {"numbers": numbers}
