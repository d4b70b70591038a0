"""Sums of moments and spans end at the ends of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.steady_clock import EARLIEST, LATEST, after, in_utc, plus, span
from tests.support.values.leases import NOON

seconds = st.floats(allow_nan=False) | st.integers(-(2**70), 2**70)
moments = st.datetimes(timezones=st.just(UTC))


def test_a_sum_inside_the_calendar_equals_datetimes() -> None:
    assert after(NOON, 15) == NOON + timedelta(seconds=15)
    assert after(NOON, 10, microseconds=1) == NOON + timedelta(seconds=10, microseconds=1)
    assert plus(NOON, timedelta(days=-1)) == NOON - timedelta(days=1)


@pytest.mark.parametrize("length", [2**31 - 1, 2**70, 1e300])
def test_a_sum_beyond_the_calendar_is_its_end(length: float) -> None:
    assert after(LATEST, length) == plus(LATEST, span(length)) == LATEST
    assert after(EARLIEST, -length) == plus(EARLIEST, span(-length)) == EARLIEST
    assert after(LATEST, 0.0, microseconds=1) == LATEST


@given(moments, seconds)
def test_no_sum_raises_and_all_are_in_order(moment: datetime, length: float) -> None:
    moved = after(moment, length)
    assert moved == plus(moment, span(length))
    assert moved >= moment if length >= 0 else moved <= moment


@pytest.mark.parametrize(
    ("moment", "same"),
    [
        (
            datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 1, tzinfo=UTC),
        ),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), EARLIEST),
        (datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-2))), LATEST),
    ],
)
def test_an_offset_may_lead_out_of_the_calendar(moment: datetime, same: datetime) -> None:
    assert in_utc(moment) == same
    assert in_utc(moment).tzinfo is UTC
