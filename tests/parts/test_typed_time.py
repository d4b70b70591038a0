"""Times are typed alike everywhere: of a day, a length, or a moment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.forms.fields import MomentField
from dashboard.lists.url_parameters import BadFilter
from dashboard.parts.time_range import read_typed_time

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "passed", "to_come"),
    [
        ("04:30", "2026-11-20T04:30", "2026-11-21T04:30"),
        ("3:12", "2026-11-20T03:12", "2026-11-21T03:12"),
        ("22:00", "2026-11-19T22:00", "2026-11-20T22:00"),
        ("1 h", "2026-11-20T11:00", "2026-11-20T13:00"),
        ("for 90 min", "2026-11-20T10:30", "2026-11-20T13:30"),
        ("1.5h", "2026-11-20T10:30", "2026-11-20T13:30"),
        ("2026-11-20T03:12:00Z", "2026-11-20T03:12", "2026-11-20T03:12"),
    ],
)
def test_what_people_type_is_a_moment(typed, passed, to_come):
    assert f"{read_typed_time(typed, 'at', NOW):%Y-%m-%dT%H:%M}" == passed
    assert f"{read_typed_time(typed, 'until', NOW, ahead=True):%Y-%m-%dT%H:%M}" == to_come


@pytest.mark.parametrize("typed", ["25:00", "soon", "for ever", "1 y", "99999 d", "4"])
def test_what_is_no_time_is_refused_with_an_example(typed):
    with pytest.raises(BadFilter, match="until cannot be"):
        read_typed_time(typed, "until", NOW, ahead=True)


def test_the_edit_form_reads_the_same():
    assert "T04:30:00.000000Z" in MomentField(label="Renewed").clean("04:30")
