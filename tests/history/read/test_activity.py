"""Changes per hour, from history and from live updates."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from leases.domain.change import HOLDER_CHANGES, ChangeType
from leases.domain.flapping import BriefChange
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import Activity
from leases.models import WatchSpan
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
KEY = ObjectName("kube-system", "scheduler")


def change(*, hours: float = 0.0, **fields):
    at = NOW - timedelta(hours=hours)
    known = {"namespace": KEY.namespace, "name": KEY.name, "at": at, "gap_seconds": None}
    return a_change(**{"change": ChangeType.TAKEN_OVER, "observed_at": at, **known, **fields})


def noted(*changes):
    activity = Activity()
    activity.note(changes)
    return activity


def test_changes_are_counted_in_their_hour_in_whatever_order_they_come():
    activity = noted(change(hours=2), change(), change(hours=2), change(hours=23), change(hours=24))
    assert activity.of(KEY, NOW) == [1] + [0] * 20 + [2, 0, 1]
    assert activity.totals(NOW) == {KEY: 4}
    assert activity.totals(NOW, hours=6) == {KEY: 3}


def test_a_moment_in_the_first_or_last_year_is_no_activity_of_today():
    times = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    for one in times:
        assert noted(change(at=one), change()).of(KEY, NOW)[:23] == [0] * 23


def test_what_is_kept_of_a_lease_that_changed_in_one_hour_is_little():
    changes = [
        change(hours=3, observed_at=NOW, kind=Kind.HEARTBEAT, name=f"n-{number}")
        for number in range(1000)
    ]
    activity = Activity()
    tracemalloc.start()
    activity.note(changes * 2)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert activity.totals(NOW) == dict.fromkeys(
        (ObjectName(c.namespace, c.name) for c in changes), 2
    )
    assert kept < 1000 * 200


def test_hours_pass_without_a_change():
    activity = noted(change())
    assert activity.of(KEY, NOW + timedelta(hours=3))[-4:] == [1, 0, 0, 0]
    assert activity.totals(NOW + timedelta(hours=24)) == {}
    activity.forget(NOW + timedelta(hours=24))
    assert activity.of(KEY, NOW) == [0] * 24
    assert activity.last_hour.of(KEY) == ()


def test_leases_of_the_first_list_are_no_activity():
    created = change(change=ChangeType.CREATED, inferred=True)
    assert noted(created).totals(NOW) == {}
    assert noted(created).last_hour.of(KEY) == ()


def test_kinds_are_counted_apart_and_gaps_summed():
    node = change(kind=Kind.HEARTBEAT, change=ChangeType.RECOVERED, name="n", gap_seconds=9.0)
    activity = noted(change(gap_seconds=2.5), change(change=ChangeType.ACQUIRED), node)
    assert activity.of_kind(Kind.ELECTION, HOLDER_CHANGES, NOW)[-1] == 2
    assert activity.of_kind(Kind.LOCK, HOLDER_CHANGES, NOW) == [0] * 24
    assert activity.unheld.seconds(NOW) == 2.5
    assert [one.change for one in activity.last_hour.of(KEY)] == ["taken_over", "acquired"]


def test_a_long_gap_counts_in_the_hours_it_lay_in():
    activity = noted(change(hours=23, gap_seconds=7200.0), change(name="b", gap_seconds=7200.0))
    assert activity.unheld.seconds(NOW) == 2 * 3600 + 1800
    assert activity.unheld.seconds(NOW + timedelta(hours=22)) == 5400


@pytest.mark.django_db
def test_a_start_reads_what_history_remembers_of_the_day():
    rows = [
        change(missed=2),
        change(hours=1, change=ChangeType.ACQUIRED, holder="cp\0", gap_seconds=3.0),
        change(hours=2, change=ChangeType.CREATED, inferred=True),
        change(hours=30),
        change(cluster="other"),
    ]
    for number, row in enumerate(rows):
        to_row(msgspec.structs.replace(row, uid=str(number))).save()
    activity = Activity()
    activity.read(rows[0].cluster, NOW)
    assert activity.of(KEY, NOW)[-3:] == [0, 1, 1]
    assert activity.last_hour.of(KEY) == (BriefChange.of(rows[0]),)
    assert activity.last_hour.totals(NOW - timedelta(hours=1)) == {KEY: 2}
    assert [one.missed for one in activity.missed] == [2]


@pytest.mark.django_db
def test_a_change_that_nobody_watched_is_in_no_figure_before_and_after_a_start():
    hours = [NOW - timedelta(hours=hours) for hours in range(6)]
    spans = [(hours[5], hours[4]), (hours[2], NOW)]
    told = [
        change(hours=4.5),
        change(hours=3, observed_at=hours[2]),  # told by the watch that went on
        change(hours=2.5, observed_at=hours[2], inferred=True, inferred_since=hours[4]),
        change(hours=1),
        change(hours=2, inferred=True, inferred_since=hours[4]),  # a list shows it
    ]
    for number, row in enumerate(told):
        to_row(msgspec.structs.replace(row, uid=str(number))).save()
    cluster = told[0].cluster
    for since, until in spans:
        WatchSpan.objects.create(cluster=cluster, process="p", since=since, until=until)
    started, running = Activity(), Activity()
    started.read(cluster, NOW)
    running.watched.read(cluster, hours[4])
    for live, heard in zip(spans, (hours[4], None), strict=True):
        running.watched.record(Connection(state=ConnectionState.LIVE, since=live[0]))
        if heard is not None:
            running.note(told[:1])
            gone = Connection(state=ConnectionState.STALE, since=heard, heard_at=heard)
            running.watched.record(gone)
            running.note([told[2], told[4]])  # a list comes before the watch is live again
    running.note([told[1], told[3]])
    for activity in (started, running):
        counted = activity.of_kind(Kind.ELECTION, HOLDER_CHANGES, NOW)
        assert counted[-6:] == [0, 1, 0, 0, 1, 0]
        assert activity.totals(NOW) == {KEY: 2}
    ends = (hours[4], hours[2])
    assert [running.watched.saw(at) for at in ends] == [False, False], "a list shows it then"


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-5), timedelta(days=3650)])
def test_a_jump_of_the_clock_leaves_the_last_day_what_it_was(by):
    activity = noted(change(hours=2, gap_seconds=60.0, kind=Kind.ELECTION), change())
    before = activity.of(KEY, NOW), activity.unheld.seconds(NOW)
    activity.clock_jumped(Jump(NOW, NOW + by))
    now = NOW + by
    assert (activity.of(KEY, now), activity.unheld.seconds(now)) == before
    assert [one.at - by for one in activity.last_hour.of(KEY)] == [NOW]
    activity.note([change(hours=-by / timedelta(hours=1))])
    assert activity.of(KEY, now)[-1] == 2
    activity.forget(now)
    assert sum(activity.of(KEY, now)) == 3


def test_hours_stay_those_of_the_clock_after_a_small_jump():
    activity = noted(change(hours=1))
    by = timedelta(minutes=10)
    activity.clock_jumped(Jump(NOW, NOW + by))
    assert activity.of(KEY, NOW + by)[-2:] == [1, 0]
    assert activity.of(KEY, NOW + timedelta(minutes=31))[-3:] == [1, 0, 0]
