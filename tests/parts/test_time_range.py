"""Which stretch and instant a URL asks for, and where its links lead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict

from dashboard.charts.time_scale import Scale
from dashboard.pages.timeline.lane_order import Chosen
from dashboard.pages.timeline.navigation_links import timeline_links
from dashboard.parts.query.strip_steps import overview_of
from dashboard.parts.query.time_range import range_for, read_timeline_filter, window
from dashboard.parts.query.url_parameters import BadFilter
from leases.domain.kind import Kind

NOW = datetime(2026, 11, 20, 12, 4, 23, tzinfo=UTC)
HOUR = timedelta(hours=1)


def shown(query: str):
    return window(read_timeline_filter(QueryDict(query), NOW), NOW)


def test_without_a_word_it_shows_the_last_six_hours_and_follows_the_clock():
    view = shown("")
    assert (view.since, view.until, view.at) == (NOW - 6 * HOUR, NOW, NOW)
    assert view.live
    assert view.follows


@pytest.mark.parametrize(
    ("minutes", "usual", "begins"),
    [
        (1, "6h", "1h"),
        (179, "6h", "1h"),
        (180, "6h", "6h"),
        (10000, "6h", "6h"),
        (240, "24h", "6h"),
        (720, "24h", "24h"),
        (None, "6h", "6h"),
    ],
)
def test_a_young_history_is_begun_with_in_a_short_range(minutes, usual, begins):
    watched = None if minutes is None else NOW - timedelta(minutes=minutes)
    assert range_for(watched, NOW, usual=usual) == begins


@pytest.mark.parametrize(
    ("text", "hours"), [("1h", 1), ("6h", 6), ("24h", 24), ("7d", 168), ("30d", 720)]
)
def test_every_range_ends_now(text, hours):
    assert shown(f"range={text}").since == NOW - hours * HOUR


def test_an_instant_inside_the_range_stays_while_the_range_goes_on():
    view = shown("at=2026-11-20T11:00:00Z")
    assert view.at == NOW.replace(hour=11, minute=0, second=0)
    assert view.live
    assert not view.follows


def test_an_instant_far_back_takes_the_stretch_along():
    view = shown("at=2026-11-01T03:12:40Z&range=1h")
    assert view.since == view.at - HOUR / 2
    assert view.until == view.at + HOUR / 2
    assert not view.live


def test_a_time_of_day_means_the_last_one():
    assert shown("at=03:12:40").at == datetime(2026, 11, 20, 3, 12, 40, tzinfo=UTC)
    assert shown("at=13:00").at == datetime(2026, 11, 19, 13, 0, tzinfo=UTC)
    assert shown("at=9:30").at == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def test_from_and_to_fix_the_stretch_and_never_reach_beyond_now():
    view = shown("from=2026-11-20T10:00:00Z&to=2026-11-20T18:00:00Z")
    assert (view.since, view.until) == (NOW.replace(hour=10, minute=0, second=0), NOW)
    assert not view.live
    assert view.at == NOW


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("range=2h", "range cannot be '2h': use one of 1h, 6h, 24h, 7d, 30d."),
        ("from=2026-11-20T10:00:00Z", "from and to belong together"),
        ("from=2026-11-20T10:00:00Z&to=2026-11-20T09:00:00Z", "to must be later than from"),
        ("from=2027-01-01T00:00:00Z&to=2027-01-02T00:00:00Z", "nothing has happened then yet"),
        ("at=yesterday", "at cannot be 'yesterday': use a time such as"),
        ("at=25:00", "at cannot be"),
        ("kind=leader", "kind cannot be 'leader'"),
        ("sort=best", "sort cannot be 'best': use one of worst, changes, name."),
        ("limit=5000", "limit cannot be '5000': use a whole number from 1 to 200."),
    ],
)
def test_an_undrawable_range_is_refused_with_a_link_to_another(query, says):
    with pytest.raises(BadFilter, match=says):
        shown(query)


@pytest.mark.parametrize(
    "query",
    [
        "range=6h",
        "range=24h",
        "from=2026-11-20T10%3A00%3A00Z&to=2026-11-20T11%3A00%3A00Z&at=2026-11-20T10%3A30%3A00Z",
        "range=1h&q=sched&kind=lock&kind=election&sort=name&view=table&limit=20&page=3",
    ],
)
def test_every_state_is_a_url_and_back(query):
    assert read_timeline_filter(QueryDict(query), NOW).query() == query


def links(query: str, *, total: int = 120):
    wanted = read_timeline_filter(QueryDict(query), NOW)
    return timeline_links(
        "/t/",
        wanted,
        window(wanted, NOW),
        now=NOW,
        counts={Kind.ELECTION: {}},
        chosen=Chosen([], wanted.page, total, 0),
    )


def test_pages_lead_on_and_keep_the_rest():
    first = links("range=1h&sort=name")["pager"]
    assert (first.previous_url, first.next_url) == (
        "",
        "/t/?range=1h&sort=name&page=2",
    )
    last = links("page=3")["pager"]
    assert (last.previous_url, last.next_url) == ("/t/?range=6h&page=2", "")


def test_zooming_goes_around_the_playhead_and_ends_at_its_limits():
    fixed = "from=2026-11-20T08:00:00Z&to=2026-11-20T12:00:00Z&at=2026-11-20T09:00:00Z"
    closer = window(read_timeline_filter(QueryDict(links(fixed)["closer"][4:]), NOW), NOW)
    assert (closer.since.hour, closer.since.minute) == (8, 30)
    assert (closer.until.hour, closer.until.minute) == (10, 30)
    assert closer.at.hour == 9
    short = links("from=2026-11-20T08:00:00Z&to=2026-11-20T08:00:15Z")
    assert short["closer"] == ""
    assert short["wider"]


def test_a_live_stretch_has_nothing_later_and_an_earlier_half():
    found = links("")
    assert found["later"] == ""
    earlier = window(read_timeline_filter(QueryDict(found["earlier"][4:]), NOW), NOW)
    assert (earlier.since, earlier.until) == (NOW - 9 * HOUR, NOW - 3 * HOUR)


@pytest.mark.parametrize("query", ["range=1h", "range=7d", "at=2026-03-01T00:00:00Z&range=24h"])
def test_the_brush_moves_in_a_longer_time_that_holds_the_stretch(query):
    view = shown(query)
    around = overview_of(view, NOW)
    assert around.scale.since <= view.since
    assert around.scale.until >= view.until
    assert around.scale.length >= 3 * (view.until - view.since)
    assert isinstance(around.scale, Scale)


def test_the_steps_of_the_overview_stay_where_they_are_while_time_goes_on():
    one = overview_of(shown(""), NOW)
    other = overview_of(window(read_timeline_filter(QueryDict(""), NOW), NOW), NOW + one.step)
    assert other.since - one.since == one.step
