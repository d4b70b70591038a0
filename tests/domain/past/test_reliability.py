"""Time without a holder, counted in watched time, by days that add up."""

from __future__ import annotations

from datetime import date, timedelta
from functools import reduce
from itertools import pairwise
from operator import add

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.change import Change, ChangeType
from leases.domain.figures import (
    NO_DATA,
    Period,
    Totals,
    budget_left,
    days_of,
    first_day,
    is_at_risk,
    misses,
    next_first_day,
    totals_of,
)
from leases.domain.kind import Kind
from leases.tracking.store import Store
from tests.support.values.changes import T0, a_change
from tests.support.values.lease_histories import apply_all, histories
from tests.support.values.leases import after


def at(second: float):
    return T0 + timedelta(seconds=second)


def span(since: float, until: float):
    return at(since), at(until)


# Held from 0; run out at 100, taken at 130; released at 200, acquired at 260; vacant from 300.
STORY = [
    a_change(0, change=ChangeType.CREATED, previous_holder=None),
    a_change(100, change=ChangeType.EXPIRED),
    a_change(130, change=ChangeType.TAKEN_OVER, holder="cp-2", previous_holder="cp-1"),
    a_change(200, change=ChangeType.RELEASED, holder=None, previous_holder="cp-2"),
    a_change(260, change=ChangeType.ACQUIRED, holder="cp-3", previous_holder=None),
    a_change(300, change=ChangeType.RELEASED, holder=None, previous_holder="cp-3"),
]


def counted(since: float, until: float, **more) -> Totals:
    return totals_of(STORY, since=at(since), until=at(until), **more)


def test_gaps_and_hand_overs_are_counted_exactly():
    assert counted(-50, 400) == Totals(
        gap_seconds=30 + 60 + 100, watched_seconds=400, handovers=2, failovers=1
    )
    assert counted(110, 250) == Totals(
        gap_seconds=20 + 50, watched_seconds=140, handovers=1, failovers=1
    )
    assert counted(-50, 0) == Totals()


def test_time_that_nobody_watched_is_neither_good_nor_bad():
    totals = counted(0, 400, blind=[span(-10, 10), span(120, 210), span(390, 500)])
    assert totals.unwatched_seconds == 10 + 90 + 10
    assert totals.watched_seconds == 290
    assert totals.gap_seconds == 20 + 50 + 90
    nothing = counted(0, 400, blind=[span(-10, 500)])
    assert (nothing.watched_seconds, nothing.lost_share) == (0, NO_DATA)
    assert not misses(nothing, 99.9)


def test_time_in_which_nobody_needed_to_hold_it_is_not_counted():
    marked = counted(0, 400, may_be_vacant=[span(90, 230)], blind=[span(205, 210)])
    assert marked.gap_seconds == 30 + 30 + 100  # an expired Lease is not vacant
    assert marked.watched_seconds == 400 - 5 - 25
    abandoned = counted(0, 400, abandoned_after=timedelta(seconds=40))
    assert abandoned.gap_seconds == 30 + 40 + 40
    assert abandoned.watched_seconds == 400 - 20 - 60
    assert counted(350, 400, abandoned_after=timedelta(seconds=40)) == Totals()
    both = counted(0, 400, abandoned_after=timedelta(seconds=40), may_be_vacant=[span(190, 230)])
    assert both.gap_seconds == 30 + 10 + 40


def test_a_lock_needs_no_holder():
    lock = [msgspec.structs.replace(change, kind=Kind.LOCK) for change in STORY]
    totals = totals_of(lock, since=at(0), until=at(400))
    assert (totals.gap_seconds, totals.handovers) == (0, 2)


def test_an_objective_is_met_or_missed_by_the_watched_time():
    totals = Totals(gap_seconds=1.0, watched_seconds=1000.0)
    assert not misses(totals, 99.9)
    assert misses(totals, 99.91)
    assert budget_left(totals, 99.0) == pytest.approx(9.0)
    assert budget_left(totals, 99.95) == pytest.approx(-0.5)


def test_a_running_period_is_missed_only_when_its_whole_budget_is_spent():
    lost = Totals(gap_seconds=60.0, watched_seconds=240.0)
    week = 7 * 86400.0 - 240.0
    assert misses(lost, 99.9)
    assert not misses(lost, 99.9, week)
    assert is_at_risk(lost, 99.9)
    assert budget_left(lost, 99.9, week) == pytest.approx(604.8 - 60)
    spent = Totals(gap_seconds=605.0, watched_seconds=1000.0)
    assert misses(spent, 99.9, 7 * 86400.0 - 1000)


@given(histories(), st.lists(st.integers(1, 200), max_size=5, unique=True))
def test_the_totals_of_days_add_up_to_the_time_without_a_holder(events, cuts):
    by_name: dict[str, list[Change]] = {}
    for change in apply_all(Store("a"), events):
        by_name.setdefault(change.name, []).append(change)
    edges = [after(second) for second in (-1000, *sorted(cuts), 1000)]
    for changes in by_name.values():
        days = [totals_of(changes, since=a, until=b) for a, b in pairwise(edges)]
        whole = totals_of(changes, since=edges[0], until=edges[-1])
        for total in (reduce(add, days), reduce(add, reversed(days))):
            assert total.gap_seconds == pytest.approx(whole.gap_seconds)
            assert total.watched_seconds == pytest.approx(whole.watched_seconds)
            assert total.handovers == whole.handovers


def test_weeks_are_of_iso_and_quarters_of_the_calendar():
    sunday = date(2026, 11, 22)
    assert first_day(Period.WEEK, sunday) == date(2026, 11, 16)
    assert first_day(Period.QUARTER, sunday) == date(2026, 10, 1)
    assert next_first_day(Period.QUARTER, date(2026, 10, 1)) == date(2027, 1, 1)
    assert first_day(Period.WEEK, date(2027, 1, 1)) == date(2026, 12, 28)
    assert len(days_of(Period.QUARTER, date(2028, 1, 1))) == 91
