"""How many changes there were when: exact, bounded, and kept without going stale."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leases.history import change_counts as counting
from leases.history.change_counts import density
from leases.history.indexed_search import HistoryFilter
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOON = T0.replace(microsecond=0)
LATER = NOON + 9 * HOUR
ALL = HistoryFilter()


@pytest.fixture(autouse=True)
def nothing_kept():
    counting._kept.clear()
    yield
    counting._kept.clear()


def remember(*numbers: float, **given) -> None:
    for number in numbers:
        at = NOON + timedelta(seconds=number)
        version = f"{number}{given}"[:32]
        to_row(a_change(at=at, observed_at=at, resource_version=version, **given)).save()


def hours(number: int, wanted: HistoryFilter = ALL, *, now=LATER) -> list[int | None]:
    return density("a", wanted, NOON, HOUR, number, now=now)


def test_every_change_counts_in_the_step_in_which_it_happened():
    remember(-1, 0, 3599.999, 3600, 7300)
    assert hours(4) == [2, 1, 1, 0]


def test_a_filter_counts_what_it_matches_alone():
    remember(10, 20)
    remember(30, holder="cp-9")
    remember(40, namespace="apps")
    assert hours(1, HistoryFilter(holder="cp-9")) == [1]
    assert hours(1, HistoryFilter(namespace="apps")) == [1]
    assert hours(1, HistoryFilter(kind=("election",))) == [4]
    assert hours(1, HistoryFilter(kind=("heartbeat",))) == [0]
    assert hours(1, HistoryFilter(change=("taken_over",), inferred=False)) == [4]


def test_the_past_is_not_counted_again_and_the_present_is():
    remember(10)
    now = NOON + timedelta(minutes=90)
    assert hours(2, now=now) == [1, 0]
    remember(20, 3700)
    assert hours(2, now=now) == [1, 1]


def test_kept_counts_are_dropped_after_a_while(monkeypatch):
    remember(10)
    assert hours(1) == [1]
    remember(20)
    monkeypatch.setattr(counting, "KEPT_FOR", -1.0)
    assert hours(1) == [2]


def test_when_the_time_is_up_the_newest_are_counted_and_the_rest_next_time(monkeypatch):
    remember(*range(0, 4 * 3600, 600))
    monkeypatch.setattr(counting, "SECONDS", -1.0)
    assert hours(4) == [None, None, None, 6]
    assert hours(4) == [None, None, 6, 6]
    monkeypatch.setattr(counting, "SECONDS", 60.0)
    assert hours(4) == [6, 6, 6, 6]


def test_where_rows_must_be_looked_at_the_newest_are_and_the_rest_next_time(monkeypatch):
    remember(*range(0, 4 * 3600, 600))
    monkeypatch.setattr(counting, "BUDGET", 15)
    seen = HistoryFilter(inferred=False)
    assert hours(4, seen) == [None, None, 6, 6]
    assert hours(4, seen) == [6, 6, 6, 6]


def test_another_cluster_is_another():
    remember(10, cluster="b")
    assert hours(1) == [0]
