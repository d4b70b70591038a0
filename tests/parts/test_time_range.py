"""Which stretch and instant a URL asks for, and where its links lead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict

from dashboard.charts.time_axis import Scale
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import BadFilter
from dashboard.pages.timeline.lane_query import LanePage
from dashboard.pages.timeline.view import timeline_links
from dashboard.parts.changes_strip import overview_of
from dashboard.parts.time_range import TimelineFilter, range_for, window, zoom_to
from leases.domain.kind import Kind

NOW = datetime(2026, 11, 20, 12, 4, 23, tzinfo=UTC)
HOUR = timedelta(hours=1)


def shown(query: str):
    return window(TimelineFilter.read(QueryDict(query), NOW), NOW)


def test_without_a_word_it_shows_the_last_six_hours_and_follows_the_clock():
    view = shown("")
    assert (view.since, view.until, view.at) == (NOW - 6 * HOUR, NOW, NOW)
    assert view.live
    assert view.follows


@pytest.mark.parametrize(
    ("minutes", "usual", "begins"),
    [
        (1, "6h", "5m"),
        (5, "6h", "5m"),
        (6, "6h", "15m"),
        (16, "6h", "1h"),
        (61, "6h", "6h"),
        (10000, "6h", "6h"),
        (240, "24h", "6h"),
        (720, "24h", "24h"),
        (None, "6h", "6h"),
    ],
)
def test_a_young_history_is_shown_whole_in_the_shortest_range(minutes, usual, begins):
    watched = None if minutes is None else NOW - timedelta(minutes=minutes)
    assert range_for(watched, NOW, usual=usual) == begins


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("5m", 5), ("15m", 15), ("1h", 60), ("6h", 360), ("24h", 1440), ("7d", 10080), ("30d", 43200)],
)
def test_every_range_ends_now(text, minutes):
    assert shown(f"range={text}").since == NOW - timedelta(minutes=minutes)


def young(query: str, seconds: float):
    wanted = TimelineFilter.read(QueryDict(query), NOW)
    return window(wanted, NOW, watched=NOW - timedelta(seconds=seconds))


def test_a_range_begins_at_the_first_watched_moment():
    view = young("range=1h", 720)
    assert (view.since, view.until) == (NOW - timedelta(seconds=720), NOW)
    assert (view.live, view.follows, view.is_young) == (True, True, True)
    inside = young("range=1h&at=11:55", 720)
    assert (inside.since, inside.is_young) == (view.since, True)


def test_a_stretch_that_was_asked_for_begins_before_anybody_watched():
    fixed = young("from=2026-11-20T10:00:00Z&to=2026-11-20T12:00:00Z", 720)
    assert (fixed.since.hour, fixed.is_young) == (10, False)
    earlier = young("range=1h&at=11:10", 720)
    assert earlier.since <= NOW.replace(hour=11, minute=10, second=0) <= earlier.until
    assert not earlier.is_young


def test_a_history_of_seconds_still_has_a_length():
    assert young("range=1h", 2).length == timedelta(seconds=10)
    assert young("range=1h", 3600).is_young is False
    assert young("range=1h", -60).length == HOUR


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
        ("range=2h", "range cannot be '2h': use one of 5m, 15m, 1h, 6h, 24h, 7d, 30d."),
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
    assert TimelineFilter.read(QueryDict(query), NOW).query() == query


def links(query: str, *, total: int = 120):
    wanted = TimelineFilter.read(QueryDict(query), NOW)
    return timeline_links(
        "/t/",
        wanted,
        window(wanted, NOW),
        now=NOW,
        counts={Kind.ELECTION: {}},
        known=True,
        chosen=LanePage([], wanted.page, total, 0),
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
    closer = window(TimelineFilter.read(QueryDict(links(fixed)["closer"][4:]), NOW), NOW)
    assert (closer.since.hour, closer.since.minute) == (8, 30)
    assert (closer.until.hour, closer.until.minute) == (10, 30)
    assert closer.at.hour == 9
    short = links("from=2026-11-20T08:00:00Z&to=2026-11-20T08:00:15Z")
    assert short["closer"] == ""
    assert short["wider"]


def zoomed(query: str, since: str, until: str):
    """Where a band between two times of day leads."""
    wanted = TimelineFilter.read(QueryDict(query), NOW)
    zoom = zoom_to(ListLinks("/t/", wanted), window(wanted, NOW), now=NOW)
    url = zoom(*(datetime.fromisoformat(f"2026-11-20T{text}Z") for text in (since, until)))
    return window(TimelineFilter.read(QueryDict(url[4:]), NOW), NOW) if url else None


def test_a_band_leads_to_its_stretch_with_its_surroundings():
    view = zoomed("range=6h", "10:00:00", "10:10:00")
    assert (view.since.minute, view.until.minute) == (59, 11)
    assert view.length == timedelta(minutes=12)
    assert view.at == view.until
    kept = zoomed("range=6h&at=10:05&sort=name", "10:00:00", "10:10:00")
    assert (kept.since, kept.at.minute) == (view.since, 5)


def test_a_short_band_leads_to_a_minute_and_in_a_minute_to_less():
    view = zoomed("range=1h", "12:00:00", "12:00:04")
    assert view.length == timedelta(minutes=1)
    assert view.since == NOW.replace(minute=59, hour=11, second=32)
    minute = "from=2026-11-20T12:00:00Z&to=2026-11-20T12:01:00Z"
    assert zoomed(minute, "12:00:10", "12:00:14").length == timedelta(seconds=10)
    assert zoomed(minute, "12:00:00", "12:00:55") is None


def test_a_band_of_just_now_leads_to_a_stretch_that_ends_now():
    view = zoomed("range=1h", "12:03:00", "12:04:23")
    assert (view.until, view.live) == (NOW, False)


def test_a_live_stretch_has_nothing_later_and_an_earlier_half():
    found = links("")
    assert found["later"] == ""
    earlier = window(TimelineFilter.read(QueryDict(found["earlier"][4:]), NOW), NOW)
    assert (earlier.since, earlier.until) == (NOW - 9 * HOUR, NOW - 3 * HOUR)


@pytest.mark.parametrize(
    "query", ["range=5m", "range=1h", "range=7d", "at=2026-03-01T00:00:00Z&range=24h"]
)
def test_the_brush_moves_in_a_longer_time_that_holds_the_stretch(query):
    view = shown(query)
    around = overview_of(view, NOW)
    assert around.scale.since <= view.since
    assert around.scale.until >= view.until
    assert around.scale.length >= 3 * (view.until - view.since)
    assert isinstance(around.scale, Scale)


def test_the_steps_of_the_overview_stay_where_they_are_while_time_goes_on():
    one = overview_of(shown(""), NOW)
    other = overview_of(window(TimelineFilter.read(QueryDict(""), NOW), NOW), NOW + one.step)
    assert other.since - one.since == one.step


def test_the_brush_of_a_young_history_begins_with_it():
    view = young("range=1h", 720)
    strip = overview_of(view, NOW, watched=view.since)
    assert strip.since <= view.since < strip.since + strip.step
    assert strip.scale.until >= NOW
    before = young("from=2026-11-20T10:00:00Z&to=2026-11-20T12:00:00Z", 720)
    assert overview_of(before, NOW, watched=view.since) == overview_of(before, NOW)


def test_the_brush_begins_with_a_history_that_began_at_a_whole_step():
    now = NOW.replace(second=0)
    view = window(
        TimelineFilter.read(QueryDict("range=5m"), now), now, watched=now - timedelta(minutes=4)
    )
    assert overview_of(view, now, watched=view.since).since == now - timedelta(minutes=4)
