"""Which lanes a timeline shows, and in what order."""

from __future__ import annotations

from datetime import timedelta

from dashboard.pages.timeline.lane_query import CHANGED, QUIET, TROUBLED, choose
from dashboard.parts.time_range import TimelineFilter, TimeRange
from leases.domain.lease import ObjectName
from leases.history.timeline_lanes import LaneTotals
from tests.pages.conftest import released_after_all
from tests.pages.timeline.conftest import OTHER
from tests.support.board import KEY


def order(
    store, wanted: TimelineFilter, now, active=(), gone=(), *, live=True, flapping=()
) -> list:
    shown = TimeRange(now - timedelta(hours=1), now, now, live, live)
    chosen = choose(store, wanted, shown, active=dict(active), gone=gone, flapping=flapping)
    return [(str(place.key), place.group) for place in chosen.page]


def test_worst_first_is_trouble_then_the_longest_without_a_holder_then_names(store, now):
    busy = {OTHER: LaneTotals(handovers=1, leaderless=5.0)}
    assert order(store, TimelineFilter(), now, busy) == [
        ("apps/free", TROUBLED),
        ("apps/other", CHANGED),
        ("kube-system/scheduler", QUIET),
    ]


def test_who_had_no_holder_for_longer_comes_first(store, now):
    names = released_after_all(store)
    found = order(store, TimelineFilter(text="apps/"), now)
    assert [key for key, group in found if group == TROUBLED] == names


def test_a_past_stretch_is_ordered_by_what_happened_in_it(store, now):
    busy = {
        OTHER: LaneTotals(handovers=9, leaderless=0.0),
        KEY: LaneTotals(handovers=1, leaderless=2.0),
    }
    found = order(store, TimelineFilter(), now, busy, live=False)
    assert [key for key, _ in found] == ["kube-system/scheduler", "apps/other", "apps/free"]


def test_by_name_lanes_stand_in_their_namespaces(store, now):
    gone = {ObjectName("apps", "gone")}
    found = order(store, TimelineFilter(sort="name"), now, gone=gone)
    assert found == [
        ("apps/free", "apps"),
        ("apps/gone", "apps"),
        ("apps/other", "apps"),
        ("kube-system/scheduler", "kube-system"),
    ]


def test_a_page_beyond_the_last_is_the_last(store, now):
    wanted = TimelineFilter(sort="name", limit=2, page=9)
    assert [key for key, _ in order(store, wanted, now)] == ["kube-system/scheduler"]


def test_the_text_is_part_of_namespace_and_name(store, now):
    assert len(order(store, TimelineFilter(text="APPS/"), now)) == 2
    assert len(order(store, TimelineFilter(text="sched", sort="name"), now)) == 1


def test_what_flaps_now_stands_in_trouble_above_the_vacant(store, now):
    found = order(store, TimelineFilter(), now, flapping={KEY})
    assert found[:2] == [("kube-system/scheduler", TROUBLED), ("apps/free", TROUBLED)]
    assert order(store, TimelineFilter(text="apps"), now, flapping={KEY})[0][0] == "apps/free"


def test_by_changes_the_lease_that_changed_hands_most_comes_first(store, now):
    busy = {
        OTHER: LaneTotals(handovers=9, leaderless=0.0),
        KEY: LaneTotals(handovers=1, leaderless=20.0),
    }
    found = order(store, TimelineFilter(sort="changes"), now, busy, flapping={KEY})
    assert found == [
        ("apps/other", CHANGED),
        ("kube-system/scheduler", CHANGED),
        ("apps/free", QUIET),
    ]
