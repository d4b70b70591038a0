"""The key figures: what they count, what they are made of, when they are bad."""

from __future__ import annotations

from datetime import timedelta

from dashboard.parts.key_figures import kpis, last_day
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import Activity
from tests.support.values.tracked_leases import NOW, tracked

COUNTS = {
    Kind.ELECTION: {Phase.HELD: 9, Phase.EXPIRED: 1},
    Kind.HEARTBEAT: {Phase.HELD: 1200, Phase.LATE: 14, Phase.EXPIRED: 3},
    Kind.LOCK: {Phase.VACANT: 2},
}


def watched_since(*hours_ago, until=None):
    """Activity of a cluster whose watch began so long ago; `until` it was lost, in hours ago."""
    activity = Activity()
    for hours in hours_ago:
        since = NOW - timedelta(hours=hours)
        activity.watched.record(Connection(state=ConnectionState.LIVE, since=since))
        if until is not None:
            lost = NOW - timedelta(hours=until)
            activity.watched.record(
                Connection(state=ConnectionState.STALE, since=lost, heard_at=lost)
            )
            until = None
    return activity


def figures(counts=COUNTS, activity=None, elections=()):
    day = last_day(0, activity or watched_since(30), elections, NOW)
    return {kpi.label: kpi for kpi in kpis("prod", counts, day)}


def value(kpi):
    return "".join(number + unit for number, unit in kpi.value)


def test_each_counts_a_phase_and_says_what_it_is_made_of():
    found = figures()
    assert value(found["Leases"]) == "1,229"
    assert found["Leases"].detail == "10 elections"
    assert (value(found["Expired"]), found["Expired"].detail) == ("4", "3 heartbeats, 1 election")
    assert found["Late"].url == "/c/prod/leases/?phase=late"


def test_unread_counts_are_not_shown_as_zero():
    strip = kpis("prod", {}, last_day(0, Activity(), [], NOW), known=False)
    assert [value(kpi) for kpi in strip] == ["?"] * 8
    assert {kpi.detail for kpi in strip} == {"not read yet", "not watched"}
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
    activity = watched_since(30)
    taken_over = Change(
        cluster="prod", namespace="a", name="b", uid="u", kind=Kind.ELECTION,
        change=ChangeType.TAKEN_OVER, at=NOW, observed_at=NOW, holder="y", gap_seconds=12.0,
    )  # fmt: skip
    activity.note([taken_over])
    day = last_day(1, activity, [still_open], NOW)
    assert (day.changes, day.gap_seconds) == (1, 72.0)


def captions(activity, **more):
    found = figures(activity=activity, **more)
    return [found[label].detail for label in ("Holder changes, 24 h", "Without holder, 24 h")]


def test_a_day_watched_in_full_needs_no_more_words():
    assert captions(watched_since(30)) == ["of elections", "elections, summed"]


def test_a_caption_says_since_when_it_counts():
    assert captions(watched_since(2)) == [
        "of elections, since 10:04",
        "elections, summed, since 10:04",
    ]
    assert captions(watched_since(5, 2, until=3)) == [
        "of elections, since 07:04, 1 h 0 m not watched",
        "elections, summed, since 07:04, 1 h 0 m not watched",
    ]
    assert captions(watched_since(40, 2, until=30))[0] == "of elections, 21 h 4 m not watched"


def test_time_without_a_holder_counts_from_the_time_in_the_caption():
    open_for_days = tracked(
        phase=Phase.EXPIRED, age=9e5, gap_since=NOW - timedelta(days=9), held=1e7
    )
    found = figures(activity=watched_since(2), elections=[open_for_days])
    assert value(found["Without holder, 24 h"]) == "2h0m"
    activity = watched_since(2)
    activity.note([
        Change(
            cluster="prod", namespace="a", name="b", uid="u", kind=Kind.ELECTION,
            change=ChangeType.TAKEN_OVER, at=NOW, observed_at=NOW, holder="y", gap_seconds=36_000.0,
        )
    ])  # fmt: skip
    assert value(figures(activity=activity)["Without holder, 24 h"]) == "2h0m"
