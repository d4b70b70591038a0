"""The changes of the last hour by Lease, within bounds."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.change import ChangeType
from leases.domain.flapping import FEWEST, BriefChange
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.history import activity
from leases.history.activity import LastHour

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
KEY, OTHER = ObjectName("apps", "operator"), ObjectName("apps", "other")


def note(hour: LastHour, key: ObjectName, *minutes: float, kind: Kind = Kind.ELECTION) -> None:
    """Changes so many minutes after NOW."""
    for minute in minutes:
        at = NOW + timedelta(minutes=minute)
        hour.add(key, kind, BriefChange(ChangeType.TAKEN_OVER, at, "h", None), at)


def test_a_lease_keeps_the_changes_that_may_flap_and_the_moments_of_an_hour():
    hour = LastHour()
    note(hour, KEY, 0, 15, 30, 59, 61)
    assert [one.at - NOW for one in hour.of(KEY)] == [timedelta(minutes=m) for m in (59, 61)]
    assert hour.totals(NOW) == {KEY: 4}
    assert hour.totals(NOW + timedelta(minutes=20)) == {KEY: 3}
    assert hour.of(OTHER) == ()
    assert hour.version == 5


def test_what_is_kept_of_a_lease_that_changed_once_is_little():
    hour, keys = LastHour(), [ObjectName("apps", f"n-{number}") for number in range(1000)]
    tracemalloc.start()
    for number, key in enumerate(keys):
        note(hour, key, number / 100)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert [one.at for one in hour.of(keys[500])] == [NOW + timedelta(minutes=5)]
    assert kept < 1000 * 200


def test_what_is_only_counted_takes_little_memory():
    hour = LastHour()
    times = (n / 10 for n in range(599))
    note(hour, KEY, *times)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    note(hour, OTHER, *(n / 10 for n in range(300)))
    judged = tracemalloc.get_traced_memory()[0] - before
    note(hour, OTHER, *(n / 10 for n in range(300, 599)))
    all_of_them = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert hour.totals(NOW)[OTHER] == 599
    assert all_of_them < 1.3 * judged


def test_a_lease_without_changes_for_an_hour_is_dropped():
    hour = LastHour()
    note(hour, KEY, *range(FEWEST))
    note(hour, OTHER, 65)
    assert hour.of(KEY) == ()
    assert hour.often() == []
    hour.forget(NOW + timedelta(minutes=126))
    assert hour.of(OTHER) == ()


def test_a_change_that_is_learned_of_an_hour_later_is_not_kept():
    hour = LastHour()
    old = BriefChange(ChangeType.EXPIRED, NOW - timedelta(hours=2), "h", None)
    hour.add(KEY, Kind.ELECTION, old, NOW)
    assert hour.of(KEY) == ()
    assert hour.totals(NOW - timedelta(days=1)) == {}


def test_leases_with_enough_changes_for_a_rule_are_named():
    hour = LastHour()
    note(hour, OTHER, *range(FEWEST - 1))
    note(hour, KEY, *range(FEWEST))
    assert hour.often() == [KEY]
    note(hour, KEY, 70)
    assert hour.often() == []


def test_totals_are_of_the_time_that_is_asked_for():
    hour = LastHour()
    note(hour, KEY, 0, 20, 40)
    note(hour, OTHER, 10, kind=Kind.HEARTBEAT)
    assert hour.totals(NOW) == {KEY: 3, OTHER: 1}
    assert hour.totals(NOW + timedelta(minutes=15)) == {KEY: 2}


def test_one_lease_cannot_fill_the_memory(monkeypatch):
    monkeypatch.setattr(activity, "MAX_OF_LEASE", 10)
    hour = LastHour()
    note(hour, KEY, *(n / 100 for n in range(50)))
    assert len(hour.of(KEY)) == 10
    assert hour.of(KEY)[-1].at == NOW + timedelta(minutes=0.49)


def test_the_text_of_a_holder_that_takes_its_turn_is_kept_once():
    hour = LastHour()
    for minute in range(30):
        holder = "".join(("pod-", str(minute % 3)))  # as decoded: another text for each change
        at = NOW + timedelta(minutes=minute)
        hour.add(KEY, Kind.ELECTION, BriefChange(ChangeType.ACQUIRED, at, holder, 2.0), at)
    kept = hour.of(KEY)
    assert [one.holder for one in kept[:4]] == ["pod-0", "pod-1", "pod-2", "pod-0"]
    assert (len(kept), len({id(one.holder) for one in kept})) == (30, 3)
    assert {one.gap_seconds for one in kept} == {2.0}


def test_all_leases_cannot_fill_the_memory_and_heartbeats_displace_no_election(monkeypatch):
    monkeypatch.setattr(activity, "MAX_KEPT", 100)
    hour = LastHour()
    note(hour, KEY, *range(FEWEST))
    for number in range(500):
        note(hour, ObjectName("kube-node-lease", f"n-{number}"), 5, kind=Kind.HEARTBEAT)
    assert hour.often() == [KEY]
    kept = hour.totals(NOW)
    assert len(kept) == 101
    assert ObjectName("kube-node-lease", "n-499") in kept
    note(hour, KEY, 6)  # changed last, so it stays
    for number in range(90):
        note(hour, ObjectName("apps", f"e-{number}"), 7)
    note(hour, KEY, 8)
    for number in range(50):
        note(hour, ObjectName("apps", f"f-{number}"), 9)
    assert len(hour.of(KEY)) == FEWEST + 2


@pytest.mark.parametrize("by", [timedelta(hours=5), timedelta(days=-400)])
def test_a_jump_of_the_clock_moves_the_changes(by):
    hour = LastHour()
    note(hour, KEY, -40, 0, 10)
    hour.clock_jumped(Jump(NOW, NOW + by))
    assert [one.at - by for one in hour.of(KEY)] == [NOW, NOW + timedelta(minutes=10)]
    hour.forget(NOW + by)
    assert len(hour.of(KEY)) == 2
    assert hour.totals(NOW + by - timedelta(minutes=41)) == {KEY: 3}
    assert hour.totals(NOW + by - timedelta(minutes=39)) == {KEY: 2}
