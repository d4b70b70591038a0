"""Times that a person types: RFC 3339 in several spellings, and `now`."""

from __future__ import annotations

import pytest
from django import forms

from dashboard.forms.fields import MomentField


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("", ""),
        (" now ", "now"),
        ("NOW", "now"),
        ("2026-11-20T12:04:22.204117Z", "2026-11-20T12:04:22.204117Z"),
        ("2026-11-20 12:04:22", "2026-11-20T12:04:22.000000Z"),
        ("2026-11-20T12:04", "2026-11-20T12:04:00.000000Z"),
        ("2026-11-20T12:04:22.5Z", "2026-11-20T12:04:22.500000Z"),
        ("2026-11-20T12:04:22.204117999z", "2026-11-20T12:04:22.204117Z"),
        ("2026-11-20T14:04:22+02:00", "2026-11-20T12:04:22.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_time_is_read(typed, read):
    assert MomentField().clean(typed) == read


@pytest.mark.parametrize(
    "typed",
    ["soon", "2026-11-20", "2026-02-30T12:00:00Z", "2026-11-20T25:00:00Z", "x" * 70,
     "0001-01-01T00:00:00Z", "2026-11-20T12:04:22.Z"],
)  # fmt: skip
def test_anything_else_is_refused(typed):
    with pytest.raises(forms.ValidationError):
        MomentField().clean(typed)
