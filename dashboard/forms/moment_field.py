"""A time of a Lease: RFC 3339 with up to microseconds, or `now`."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from dashboard.forms.widgets import Moment
from leases.domain.edit.lease_write import NOW
from leases.wire.microtime import normal_microtime

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
        if shape is None:
            raise forms.ValidationError(_advice())
        day, minute, second, fraction, zone = shape.groups()
        micros = (fraction or "").ljust(6, "0")[:6]
        written = f"{day}T{minute}:{second or '00'}.{micros}{(zone or 'Z').upper()}"
        try:
            normal = normal_microtime(written)
        except ValueError:
            raise forms.ValidationError(_advice("There is no such moment. ")) from None
        if normal is None:
            raise forms.ValidationError("The API reads this time as none: leave the field empty.")
        return normal


def _advice(reason: str = "") -> str:
    return f"{reason}Write a time in UTC, such as {EXAMPLE}, or the word {NOW}."
