"""The key figures: what they count, what they are made of, when they are bad."""

from __future__ import annotations

from datetime import timedelta

from dashboard.parts.key_figures import kpis, last_day
from leases.domain.changes.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.history.read.activity import Activity
from tests.support.lease_parts import NOW, tracked

COUNTS = {
    Kind.ELECTION: {Phase.HELD: 9, Phase.EXPIRED: 1},
    Kind.HEARTBEAT: {Phase.HELD: 1200, Phase.LATE: 14, Phase.EXPIRED: 3},
    Kind.LOCK: {Phase.VACANT: 2},
}


def figures(counts=COUNTS):
    day = last_day(0, Activity(), [], NOW)
    return {kpi.label: kpi for kpi in kpis("prod", counts, day)}


def value(kpi):
    return "".join(number + unit for number, unit in kpi.value)


def test_each_counts_a_phase_and_says_what_it_is_made_of():
    found = figures()
    assert value(found["Leases"]) == "1,229"
    assert found["Leases"].detail == "10 elections"
    assert (value(found["Expired"]), found["Expired"].detail) == ("4", "3 heartbeats, 1 election")
    assert found["Late"].url == "/c/prod/leases/?phase=late"


def test_what_was_not_read_is_not_zero():
    strip = kpis("prod", {}, last_day(0, Activity(), [], NOW), known=False)
    assert [value(kpi) for kpi in strip] == ["?"] * 6 + ["0", "0s"]
    assert not any(kpi.figure for kpi in strip)


def test_a_share_is_never_rounded_up_to_all():
    assert figures({Kind.LOCK: {Phase.HELD: 99999, Phase.LATE: 1}})["Held"].detail == "99.99 %"


def test_trouble_is_bad_and_a_free_lock_is_not():
    found = figures()
    assert found["Expired"].bad
    assert not found["Vacant"].bad
    assert figures({Kind.ELECTION: {Phase.VACANT: 1}})["Vacant"].bad


def test_the_time_without_a_holder_is_summed_and_cut_to_the_day():
    still_open = tracked(phase=Phase.EXPIRED, age=75, gap_since=NOW - timedelta(seconds=60))
    activity = Activity()
    taken_over = Change(
        cluster="prod", namespace="a", name="b", uid="u", kind=Kind.ELECTION,
        change=ChangeType.TAKEN_OVER, at=NOW, observed_at=NOW, gap_seconds=12.0,
    )  # fmt: skip
    activity.note([taken_over])
    day = last_day(1, activity, [still_open], NOW)
    assert (day.changes, day.gap_seconds) == (1, 72.0)
