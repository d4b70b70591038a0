"""What all forms share: how they are drawn, what they showed, the reason, one write each."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from django import forms
from django.conf import settings
from django.forms import BoundField
from django.forms.renderers import TemplatesSetting
from django.forms.utils import ErrorDict

from dashboard.config import Config
from dashboard.forms.fields import Area, TextLine
from leases.wire.status import ApiError


class AdminBoundField(BoundField):
    """A field of an AdminForm, as `forms/_field.html` draws it."""

    form: AdminForm

    @property
    def api(self) -> str:
        """The name of the field in the API, shown beside its label."""
        return self.form.api_names.get(self.name, "")

    @property
    def wide(self) -> bool:
        return self.name in self.form.wide

    @property
    def required_to_save(self) -> bool:
        return self.name in self.form.required_to_save

    @property
    def was(self) -> str | None:
        """What the Lease says now, if the person changed the field; else None."""
        return self.form.changed_from().get(self.name)


class AdminRenderer(TemplatesSetting):
    """Draws fields with our template and widgets with Django's or ours."""

    field_template_name = "forms/_field.html"
    bound_field_class = AdminBoundField


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

    def full_clean(self) -> None:
        for field in self.fields.values():  # a form names some of them for its purpose
            if field.error_messages["required"] == UNNAMED:
                field.error_messages["required"] = f"Fill in “{field.label}”."
        super().full_clean()


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


MAX_REASON = 500
NO_ANSWER, TOO_MANY, SERVER_ERROR = 0, 429, 500


def refuses(error: ApiError) -> bool:
    """Whether the cluster looked at the request and said no."""
    code = error.status.code
    return NO_ANSWER < code < SERVER_ERROR and code != TOO_MANY


def why_not(error: ApiError) -> str:
    """Why a request was not carried out, in a sentence."""
    if refuses(error):
        return f"The cluster refused: {error}"
    code = error.status.code
    return f"The cluster could not do it ({code}): {error}" if code else str(error)


class FieldProblem:
    """An error of the form for the summary: where it is, its label, one sentence."""

    def __init__(self, anchor: str, label: str, text: str) -> None:
        self.anchor, self.label, self.text = anchor, label, text


class AdminForm(forms.Form):
    """A form with a reason. `saving`: it is sent to write, not to preview.

    `once` identifies this drawing of the form: a write carries it into the audit trail, where it
    is unique, so that a double click or a resend writes once.
    """

    default_renderer = AdminRenderer
    use_required_attribute = False

    # The name in the API of each field that has one.
    api_names: ClassVar[Mapping[str, str]] = {}
    # The fields that take the whole width.
    wide: ClassVar[frozenset[str]] = frozenset({"reason"})
    # The field of each cause that the API server names; see `place`.
    field_of_cause: ClassVar[Mapping[str, str]] = {}

    reason = forms.CharField(
        label="Reason",
        required=False,
        max_length=MAX_REASON,
        widget=Area(rows=2, placeholder="Why are you doing this?"),
        help_text="Kept in the audit trail with your name.",
        error_messages={
            "required": "Say why; the reason is kept in the audit trail.",
            "max_length": f"A reason has at most {MAX_REASON} characters.",
        },
    )
    once = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, *args: Any, saving: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.error_messages |= NUL
        self.saving = saving
        config: Config = settings.LEASEBOARD
        self.required_to_save = frozenset({"reason"} if config.reason_required else ())
        for name in self.required_to_save:
            self.fields[name].required = saving
            self.fields[name].widget.attrs["aria-required"] = "true"

    @property
    def fresh_once(self) -> str:
        """The value of `once` to draw: each page can write once."""
        return secrets.token_urlsafe(24)

    def without_errors(self) -> Self:
        """Draw it without errors: the person still types."""
        self._errors = ErrorDict(renderer=self.renderer)
        self.cleaned_data = {}
        return self

    def changed_from(self) -> Mapping[str, str]:
        """Return what the Lease says now in each field that the person changed."""
        return {}

    def place(self, error: ApiError) -> str:
        """Add the causes of a refusal to their fields; return one sentence for the rest, or ""."""
        unplaced = []
        for cause in error.causes:
            field = self._field_of(cause.field)
            if field is None:
                unplaced.append(f"{cause.field}: {cause.message}" if cause.field else cause.message)
            elif cause.message not in self.errors.get(field, ()):
                self.add_error(field, cause.message)
        if error.causes and not unplaced:
            return ""
        return f"The cluster refused: {'; '.join(unplaced)}" if unplaced else why_not(error)

    def _field_of(self, path: str) -> str | None:
        """Return the field of a cause, also of one inside it (`spec.strategy.strategy`)."""
        inside = (
            api
            for api in self.field_of_cause
            if path == api or path.startswith((f"{api}.", f"{api}["))
        )
        longest = max(inside, key=len, default=None)
        return None if longest is None else self.field_of_cause[longest]

    def problems(self) -> list[FieldProblem]:
        """All errors, in the order of the fields; those of the whole form come first."""
        found = [FieldProblem("", "", str(text)) for text in self.non_field_errors()]
        for bound in self:
            anchor = "" if bound.is_hidden else bound.id_for_label or bound.auto_id
            found += [FieldProblem(anchor, str(bound.label), str(text)) for text in bound.errors]
        return found
