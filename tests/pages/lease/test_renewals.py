"""How regularly a Lease was renewed: bars against the duration and the cadence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.charts.histograms import BOTTOM, INTERVALS_TOP, renewal_chart
from dashboard.charts.time_axis import Scale
from dashboard.pages.lease.fields import fact_groups
from dashboard.pages.lease.past_terms import renewals_view
from leases.domain.kind import Kind
from leases.tracking.renewals import LongestInterval
from tests.support.values.tracked_leases import NOW, tracked

HOUR = Scale(NOW - timedelta(hours=1), NOW)


def ago(seconds: float):
    return NOW - timedelta(seconds=seconds)


def chart(*intervals: tuple[float, float], **more):
    """`intervals`: (seconds ago, seconds)."""
    known = {"known_since": ago(3600), "duration": 15.0, "usual": 2.0, "late_after": 4.0}
    pairs = [(ago(when), seconds) for when, seconds in intervals]
    return renewal_chart(pairs, HOUR, **(known | more))


def test_bars_are_as_high_as_their_intervals_and_stand_where_they_ended():
    drawn = chart((3599, 2.0), (1800, 4.0), (10, 2.0))
    first, middle, last = drawn.bars
    assert middle.height == pytest.approx(2 * first.height, abs=0.2)
    assert (first.x, middle.x) == (5.0, 52.5)
    assert last.x + last.width < 100
    assert all(bar.y + bar.height == pytest.approx(BOTTOM) for bar in drawn.bars)


def test_a_bar_has_the_phase_that_the_lease_was_in_when_it_ended():
    drawn = chart((300, 2.0), (200, 6.9), (100, 15.0))
    assert [bar.phase for bar in drawn.bars] == ["held", "late", "expired"]
    assert drawn.longest is not None
    assert drawn.longest.seconds == 15.0


def test_the_longest_of_intervals_at_one_place_is_drawn():
    assert [bar.seconds for bar in chart((105, 2.0), (95, 5.0), (80, 3.0)).bars] == [5.0, 3.0]


def test_renewals_outside_the_range_are_not_drawn():
    assert chart((3700, 2.0), (-1, 2.0)).bars == ()


def test_the_duration_is_the_limit_unless_it_would_flatten_the_bars():
    near = chart((10, 2.0))
    assert near.limit is not None
    assert INTERVALS_TOP < near.limit.y < near.bars[0].y
    far = chart((10, 10.0), duration=3600.0, usual=10.0)
    assert far.limit is None
    assert far.bars[0].height > (BOTTOM - INTERVALS_TOP) / 2


def test_levels_are_few_and_round_and_inside():
    for usual in (0.01, 0.3, 2.0, 29.0, 700.0):
        lines = chart((10, usual), duration=None, usual=usual).lines
        assert 2 <= len(lines) <= 6
        assert all(INTERVALS_TOP - 2 <= line.y <= BOTTOM for line in lines)


def test_time_before_anybody_looked_is_marked():
    assert chart((10, 2.0), known_since=ago(900)).unknown == pytest.approx(71.25)
    assert chart((10, 2.0)).unknown == 0


def test_time_that_nobody_watched_is_fog():
    fog = chart((3000, 2.0), (10, 2.0), blind=[(ago(1800), ago(900))]).fogs
    assert [(one.x, one.width) for one in fog] == [(52.5, 23.75)]
    assert chart((10, 2.0), blind=[(ago(9000), ago(3600))]).fogs == ()


def test_no_bar_stands_where_nobody_watched():
    intervals = tuple(LongestInterval(ago(seconds), 2.0) for seconds in (200, 90, 10))
    view = renewals_view(tracked(), intervals, NOW, [(ago(150), ago(60))])
    assert view is not None
    assert len(view["chart"].bars) == 2


def test_the_picture_is_said_in_a_sentence():
    view = renewals_view(
        tracked(),
        (
            LongestInterval(ago(200), 2.0),
            LongestInterval(ago(90), 6.9),
            LongestInterval(ago(10), 2.0),
        ),
        NOW,
    )
    assert view is not None
    assert view["finding"] == (
        "Seconds between renewals: usually 2 s, longest 6.9 s at 12:02:50, "
        "the Lease expires at 15 s"
    )
    assert view["range"] == "longest interval per 10 s, last 10 m"
    assert view["peak"] is not None
    assert view["peak"].label == "6.9 s"
    assert view["far"] == ""


def test_a_range_grows_with_what_is_known():
    view = renewals_view(tracked(), (LongestInterval(ago(3000), 2.0),), NOW)
    assert view is not None
    assert view["range"] == "longest interval per 30 s, last 1 h"


def test_a_duration_far_above_is_said():
    view = renewals_view(
        tracked(duration=3600, cadence_seconds=10.0), (LongestInterval(ago(10), 10.0),), NOW
    )
    assert view is not None
    assert view["limit"] is None
    assert view["far"] == "It lasts 1 h 0 m, far above this picture."


def test_without_a_renewal_there_is_no_picture():
    assert renewals_view(tracked(), (), NOW) is None


def test_each_slot_of_a_short_range_has_a_bar_of_its_own():
    intervals = tuple(LongestInterval(ago(10 * n), 2.0) for n in range(50, 0, -1))
    view = renewals_view(tracked(), intervals, NOW)
    assert view is not None
    assert len(view["chart"].bars) == 50
    distance = view["chart"].bars[1].x - view["chart"].bars[0].x
    assert distance == pytest.approx(95 / 60, abs=0.01)
    assert view["chart"].bars[0].width == pytest.approx(0.78 * distance, abs=0.01)


@pytest.mark.parametrize("holder", ["cp-1", None])
def test_a_lease_that_is_never_renewed_has_no_time_of_a_renewal(holder):
    lock = tracked(kind=Kind.LOCK, holder=holder, duration=None, cadence_seconds=None)
    (fact,) = [one for one in fact_groups(lock, NOW)[1][1] if one.label == "Last renewal seen"]
    assert (fact.value, fact.absent, fact.since) == (None, "none seen", None)
