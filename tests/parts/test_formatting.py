"""Ages, numbers and moments as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.parts import formatting

NOW = datetime(2026, 11, 20, 12, 4, 23, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0.0 s"),
        (0.84, "0.8 s"),
        (9.94, "9.9 s"),
        (9.96, "9.9 s"),
        (49.99999999, "50 s"),
        (59.9, "59 s"),
        (59.99999999, "1 m 0 s"),
        (90, "1 m 30 s"),
        (31860, "8 h 51 m"),
        (4881600, "56 d 12 h"),
    ],
)
def test_an_age_has_its_two_largest_units(seconds, text):
    assert formatting.age(seconds) == text


@pytest.mark.parametrize(
    ("unwatched", "text"),
    [
        (0.0, "3 m 58 s"),
        (0.04, "3 m 58 s"),
        (20.0, "at most 3 m 58 s, 20 s of it not watched"),
        (238.0, "at most 3 m 58 s, none of it watched"),
    ],
)
def test_a_gap_says_no_0_0_seconds(unwatched, text):
    assert formatting.gap_length(238.0, unwatched) == text


def test_a_rough_age_has_the_largest_unit_alone():
    assert formatting.rough(90) == "1 m"
    assert formatting.rough(4.2) == "4.2 s"


def test_an_interval_without_a_fraction_is_said_without_one():
    assert formatting.seconds(15.0) == "15 s"
    assert formatting.seconds(2.04) == "2.0 s"
    assert formatting.seconds(3600) == "1 h 0 m"


def test_intervals_of_one_chart_have_one_unit_with_a_fraction_or_without():
    assert [formatting.seconds(one) for one in (89.0, 98.4)] == ["89 s", "98 s"]
    assert formatting.seconds(49.99999999) == "50 s"
    assert formatting.seconds(120.5) == "2 m 0 s"


def test_names_are_listed_up_to_a_limit():
    assert formatting.listed(["a"]) == "a"
    assert formatting.listed(["a", "b", "c"]) == "a, b and c"
    assert formatting.listed(list("abcde")) == "a, b, c and 2 more"


def test_a_number_of_things_has_its_plural():
    assert formatting.counted(1, "change") == "1 change"
    assert formatting.counted(1200, "identity", "identities") == "1,200 identities"


def test_a_moment_of_another_day_carries_its_date():
    assert formatting.when(NOW, NOW) == "12:04:23"
    assert formatting.when(NOW.replace(day=19), NOW) == "19 Nov 2026 12:04:23"
    assert formatting.when(NOW, NOW, fine=True) == "12:04:23.123"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2 of 16 held Leases, 13 %", "2 of 16 held Leases, 13\xa0%"),
        ("2.0 s", "2.0\xa0s"),
        ("of 28 seen in 24 h", "of 28 seen in 24\xa0h"),
        ("3 holders, 4 Leases", "3 holders, 4 Leases"),
    ],
)
def test_a_number_keeps_its_unit_on_its_line(text: str, kept: str) -> None:
    assert formatting.unbroken(text) == kept
