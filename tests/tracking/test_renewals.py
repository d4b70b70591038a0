"""How far apart renewals were lately."""

from __future__ import annotations

import tracemalloc
from datetime import timedelta
from itertools import count, islice

import msgspec

from leases.domain.cause.clue import late_counts_for
from leases.domain.phase import EMPTY, with_sample
from leases.tracking import renewals
from leases.tracking.renewals import (
    IN_A_PART,
    KEPT,
    LATELY,
    PARTS,
    SLOT,
    SLOTS,
    LateRenewals,
    RenewalLog,
)
from leases.tracking.tracked_lease import Tracked
from tests.support.values.tracked_leases import NOW, tracked

KNOWN = tracked(cadence_seconds=None, renewals_seen=0)  # holds no intervals itself


def renewed(after: float, *intervals: float, seen: int) -> Tracked:
    """A Lease last renewed so many seconds after NOW (12:04:23), with its last intervals."""
    at = NOW + timedelta(seconds=after)
    window = EMPTY
    for interval in intervals:
        window = with_sample(window, interval)
    return tracked(observed_at=at, intervals=window, renewals_seen=seen)


def intervals_of(log: RenewalLog) -> list[tuple[float, float]]:
    """Begin of each slot, in seconds after 12:04:20, and its longest interval."""
    begin = NOW - timedelta(seconds=3)
    return [((i.since - begin).total_seconds(), round(i.seconds, 3)) for i in log.of(KNOWN)]


def test_a_slot_keeps_its_longest_interval():
    log = RenewalLog()
    log.look([renewed(0, 2.0, seen=1)])
    log.look([renewed(2, 2.0, 2.5, seen=2)])
    log.look([renewed(4, 2.0, 2.5, 2.0, seen=3)])
    log.look([renewed(10, 2.0, 2.5, 2.0, 6.0, seen=4)])
    assert intervals_of(log) == [(0, 2.5), (10, 6.0)]


def test_renewals_between_two_looks_are_placed_by_their_intervals():
    log = RenewalLog()
    log.look([renewed(0, 2.0, seen=1)])
    log.look([renewed(27, 2.0, 9.0, 9.0, 9.0, seen=4)])
    assert intervals_of(log) == [(0, 2.0), (10, 9.0), (20, 9.0), (30, 9.0)]


def test_a_lease_begins_with_what_it_remembers_itself():
    log = RenewalLog()
    log.look([renewed(0, 2.0, 20.0, 2.0, seen=9000)])
    assert intervals_of(log) == [(-20, 2.0), (0, 20.0)]


def test_a_look_without_a_renewal_changes_nothing():
    log = RenewalLog()
    one = renewed(0, 2.0, seen=1)
    log.look([one])
    log.look([one])
    assert intervals_of(log) == [(0, 2.0)]


def test_one_that_was_never_renewed_is_not_followed():
    log = RenewalLog()
    log.look([renewed(0, seen=0)])
    assert intervals_of(log) == []


def test_an_hour_is_kept_and_a_silence_leaves_nothing_of_it():
    log = RenewalLog()
    log.look([renewed(0, 2.0, seen=1)])
    log.look([renewed(SLOT * (SLOTS - 1), 2.0, 3.0, seen=2)])
    assert len(intervals_of(log)) == 2
    log.look([renewed(SLOT * SLOTS, 2.0, 3.0, 4.0, seen=3)])
    assert [seconds for _, seconds in intervals_of(log)] == [3.0, 4.0]
    log.look([renewed(SLOT * SLOTS * 5, 2.0, 3.0, 4.0, 5.0, seen=4)])
    assert [seconds for _, seconds in intervals_of(log)] == [5.0]


def test_a_lease_made_anew_begins_anew():
    log = RenewalLog()
    log.look([renewed(0, 2.0, seen=50)])
    log.look([renewed(20, 7.0, seen=1)])
    assert intervals_of(log) == [(0, 2.0), (20, 7.0)]


def test_leases_that_are_no_longer_renewed_are_forgotten():
    log = RenewalLog()
    log.look([renewed(0, 2.0, seen=1)])
    log.forget(NOW - timedelta(seconds=30))
    assert intervals_of(log)
    log.forget(NOW + timedelta(seconds=30))
    assert not intervals_of(log)


def test_no_more_leases_are_followed_than_memory_is_meant_for(monkeypatch):
    monkeypatch.setattr(renewals, "MAX_LEASES", 1)
    log = RenewalLog()
    one = renewed(0, 2.0, seen=1)
    meta = msgspec.structs.replace(one.lease.metadata, name="other")
    lease = msgspec.structs.replace(one.lease, metadata=meta)
    other = one.replace(key=lease.key, lease=lease)
    log.look([one, other])
    log.look([other])
    assert intervals_of(log)
    assert log.of(other.replace(intervals=EMPTY, renewals_seen=0)) == ()


def test_a_lease_not_followed_shows_its_remembered_intervals_and_is_requested(monkeypatch):
    monkeypatch.setattr(renewals, "MAX_ASKED", 1)
    log = RenewalLog()
    assert [one.seconds for one in log.of(renewed(0, 2.0, 12.0, seen=9000))] == [2.0, 12.0]
    assert log.asked == [KNOWN.key]
    log.of(tracked("other"))
    assert [key.name for key in log.asked] == ["other"]


def test_the_last_overdue_renewals_of_a_lease_are_kept():
    late = LateRenewals()
    for second in range(KEPT + 3):
        late.note(tracked(observed_at=NOW), NOW + timedelta(seconds=second))
    kept = late.of(tracked().key)
    assert [one.seconds for one in kept] == list(range(3, KEPT + 3))


def test_overdue_renewals_are_forgotten_once_they_may_not_tell_why_a_lease_was_lost():
    late, counts = LateRenewals(), timedelta(seconds=late_counts_for(tracked().lasts_seconds))
    once, twice = tracked("once", observed_at=NOW), tracked("twice", observed_at=NOW)
    late.note(once, NOW + timedelta(seconds=1))
    late.note(twice, NOW + timedelta(seconds=2))
    late.note(twice, NOW + timedelta(seconds=1) + counts)
    assert late.of(once.key)
    assert len(late.of(twice.key)) == 2
    late.note(twice, NOW + timedelta(seconds=2) + counts)
    assert not late.of(once.key)
    assert len(late.of(twice.key)) == 2  # the first of three counts no more


def test_changes_of_one_moment_share_what_was_late_around_them():
    late = LateRenewals()
    known = tracked("a", age=12)
    late.note(known, NOW)
    one = late.lately(NOW)
    assert late.lately(NOW) is one
    late.note(known, NOW)
    assert list(map(len, late.lately(NOW))) == [2]
    assert late.lately(NOW + 2 * LATELY) == ()


def test_changes_of_minutes_share_nearly_all_that_was_late_around_them():
    late, known = LateRenewals(), tracked("a", age=12)
    moments = (NOW + timedelta(milliseconds=one) for one in count())
    for moment in islice(moments, IN_A_PART * PARTS):
        late.note(known, moment)
    earlier = late.lately(NOW)
    assert list(map(len, earlier)) == [IN_A_PART] * PARTS
    late.note(known, next(moments))
    later = late.lately(NOW)
    assert list(map(len, later)) == [IN_A_PART] * PARTS + [1]
    assert all(one is other for one, other in zip(earlier, later, strict=False))
    for moment in islice(moments, IN_A_PART):
        late.note(known, moment)
    assert late.lately(NOW)[0] is earlier[1]


def test_what_is_kept_of_a_lease_that_was_late_once_is_little(monkeypatch):
    monkeypatch.setattr(renewals, "MAX_LATE_LEASES", 1000)
    late = LateRenewals()
    leases = [tracked(name=f"n-{number}", observed_at=NOW) for number in range(1500)]
    tracemalloc.start()
    for one in leases:
        late.note(one, NOW + timedelta(seconds=9))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert late.of(leases[499].key) == ()
    assert len(late.of(leases[500].key)) == 1
    assert kept < 1000 * 512
