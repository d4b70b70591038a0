"""A time that a person types is read in the zone of the page, and links name the moment."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError

from dashboard.forms.fields import MomentField
from dashboard.lists import typed_times
from dashboard.lists.typed_times import Typing, resolve
from dashboard.parts.time_range import read_typed_time

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TWICE = "25 Oct 2026 02:30:00 came twice in Europe/Berlin, as clocks went back: the first is meant."
NEVER = (
    "29 Mar 2026 02:30:00 did not come in Europe/Berlin, as clocks went forward: 03:00:00 is meant."
)


@pytest.mark.parametrize(
    ("zone", "typed", "moment", "said"),
    [
        ("Europe/Berlin", "2026-11-20T03:12", "2026-11-20T02:12", ""),
        ("Asia/Kolkata", "2026-11-20T03:12", "2026-11-19T21:42", ""),
        ("America/New_York", "2026-11-20T23:30", "2026-11-21T04:30", ""),
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30", TWICE),
        ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00", ""),
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00", NEVER),
        ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00", ""),
    ],
)
def test_a_time_of_a_zone_is_one_moment(zone, typed, moment, said):
    found = resolve(datetime.fromisoformat(typed), ZoneInfo(zone))
    assert found == (datetime.fromisoformat(f"{moment}Z"), said)


def test_a_jump_of_half_an_hour_is_found_to_the_second():
    typed = datetime(2026, 10, 4, 2, 15)  # noqa: DTZ001
    moment, said = resolve(typed, ZoneInfo("Australia/Lord_Howe"))
    assert moment == datetime(2026, 10, 3, 15, 30, tzinfo=UTC)
    assert said.endswith("as clocks went forward: 02:30:00 is meant.")


@pytest.fixture
def berlin():
    notes: list[str] = []
    token = typed_times._typing.set(Typing(ZoneInfo("Europe/Berlin"), notes.append))
    yield notes
    typed_times._typing.reset(token)


@pytest.mark.parametrize(
    ("typed", "passed", "to_come"),
    [
        ("04:30", "2026-11-20T03:30", "2026-11-21T03:30"),
        ("13:30", "2026-11-19T12:30", "2026-11-20T12:30"),
        ("0:15", "2026-11-19T23:15", "2026-11-20T23:15"),
        ("1 h", "2026-11-20T11:00", "2026-11-20T13:00"),
        ("2026-11-20T03:12:00Z", "2026-11-20T03:12", "2026-11-20T03:12"),
        ("2026-11-20T03:12:00 02:00", "2026-11-20T01:12", "2026-11-20T01:12"),
        ("2026-11-20 03:12:00", "2026-11-20T02:12", "2026-11-20T02:12"),
    ],
)
def test_a_time_of_day_is_one_of_the_zone(berlin, typed, passed, to_come):
    assert read_typed_time(typed, "at", NOW) == datetime.fromisoformat(f"{passed}Z")
    assert read_typed_time(typed, "at", NOW, ahead=True) == datetime.fromisoformat(f"{to_come}Z")
    assert berlin == []


def test_a_field_of_a_lease_is_read_in_the_zone(berlin):
    assert MomentField().clean("2026-11-20T13:04:22.5") == "2026-11-20T12:04:22.500000Z"
    assert MomentField().clean("2026-11-20T13:04:22Z") == "2026-11-20T13:04:22.000000Z"
    with pytest.raises(ValidationError, match="There is no such moment"):
        MomentField().clean("0001-01-01T00:00")


def test_only_the_time_that_is_meant_is_told_to_come_twice(berlin):
    morning = datetime(2026, 10, 25, 12, 0, tzinfo=UTC)
    assert read_typed_time("02:30", "at", morning) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert berlin == [TWICE]
    berlin.clear()
    just = datetime(2026, 10, 25, 0, 10, tzinfo=UTC)
    assert read_typed_time("02:30", "at", just) == datetime(2026, 10, 24, 0, 30, tzinfo=UTC)
    assert berlin == []
