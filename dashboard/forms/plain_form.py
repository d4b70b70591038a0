"""Forms that do not concern a Lease: each field with its label, help and errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.forms.renderers import TemplatesSetting

from dashboard.forms.widgets import TextLine

UNNAMED = forms.Field.default_error_messages["required"]
NUL = {"null_characters_not_allowed": "Leave out the NUL character."}


class PlainRenderer(TemplatesSetting):
    field_template_name = "forms/_plain_field.html"


class PlainForm(forms.Form):
    default_renderer = PlainRenderer
    use_required_attribute = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.error_messages |= NUL
            if field.error_messages["required"] == UNNAMED:
                field.error_messages["required"] = f"Fill in “{field.label}”."


class Hidden(forms.PasswordInput):
    """A secret: what was typed is never drawn again."""

    def __init__(self) -> None:
        super().__init__({"class": "input mono", "autocomplete": "new-password"})


class Names(forms.CharField):
    """Names with commas or blanks between them, as a tuple."""

    def __init__(self, *, most: int = 50, **kwargs: Any) -> None:
        super().__init__(
            required=False,
            max_length=4000,
            widget=TextLine(mono=True, spellcheck="false"),
            **kwargs,
        )
        self._most = most

    def clean(self, value: Any) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(str(super().clean(value)).replace(",", " ").split()))
        if len(names) > self._most:
            raise forms.ValidationError(
                f"Write {self._most} names at most. These are {len(names)}."
            )
        return names

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, tuple) else value


class Some(forms.MultipleChoiceField):
    """Check boxes; none means all."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, words: Iterable[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(
            required=False,
            choices=list(words),
            error_messages={"invalid_choice": "%(value)s is none of these. Choose from the list."},
            **kwargs,
        )
