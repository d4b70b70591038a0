"""A note that a person adds to an incident."""

from __future__ import annotations

from django import forms

from dashboard.forms.plain_form import NUL

MAX_NOTE = 4000  # characters
MAX_NOTES = 200  # of one incident


class NoteForm(forms.Form):
    """The text of a note."""

    text = forms.CharField(
        label="Add a note",
        max_length=MAX_NOTE,
        error_messages={
            **NUL,
            "required": "Write what you found out.",
            "max_length": f"Use {MAX_NOTE:,} characters at most. These are %(show_value)s.",
        },
    )

    def __init__(self, *args: object, notes: int, **kwargs: object) -> None:
        """`notes`: how many the incident has."""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._notes = notes

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if self._notes >= MAX_NOTES:
            raise forms.ValidationError(f"An incident takes {MAX_NOTES} notes, and has them.")
        return "\n".join(text.splitlines())
