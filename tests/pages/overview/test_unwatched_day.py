"""What is counted in 24 hours says which of them nobody watched."""

from __future__ import annotations

from datetime import timedelta

from django.template.loader import render_to_string

from dashboard.live.publisher import ClusterHub
from dashboard.live.shared_drawings import render_row
from dashboard.pages.overview import summary
from dashboard.parts.node_summary import nodes_view
from leases.domain.watched_times import Connection, ConnectionState
from leases.tracking.store import Store
from tests.support.values.tracked_leases import NOW, tracked

HOUR = timedelta(hours=1)


def channel_watched_since(hours: float) -> ClusterHub:
    channel = ClusterHub(Store("a"))
    since = NOW - hours * HOUR
    channel.publish(
        channel.store.connect(Connection(state=ConnectionState.LIVE, since=since), since)
    )
    return channel


def test_the_overview_says_since_when_it_counts_and_draws_the_rest_as_unwatched():
    view = summary(channel_watched_since(2), NOW)
    assert [kpi.detail for kpi in view.kpis[-2:]] == [
        "of elections, since 10:04",
        "elections, summed, since 10:04",
    ]
    assert len(view.hours.fog) == 1
    html = render_to_string("overview/_hours.html", {"view": view})
    assert html.count(", not watched</title>") == 21
    assert html.count(' zero"') == 3
    assert html.count('class="fog"') == 2  # in the picture and in its key


def test_a_day_that_was_watched_in_full_shows_nothing_of_it():
    view = summary(channel_watched_since(25), NOW)
    assert [kpi.detail for kpi in view.kpis[-2:]] == ["of elections", "elections, summed"]
    assert "watched" not in render_to_string("overview/_hours.html", {"view": view})


def test_nodes_say_in_which_time_they_joined_and_left():
    assert nodes_view(channel_watched_since(25), NOW).counted_in == "24 h"
    assert nodes_view(channel_watched_since(2), NOW).counted_in == "since 10:04"
    assert nodes_view(ClusterHub(Store("a")), NOW).counted_in == "not watched"


def test_the_bars_of_a_row_are_fog_in_the_hours_that_nobody_watched():
    lately = render_row("a", tracked(), NOW, channel_watched_since(2).activity)
    assert 'aria-label="0 changes in 24 h, 21 h not watched"' in lately
    assert lately.count('class="fog"') == 1
    always = render_row("a", tracked(), NOW, channel_watched_since(25).activity)
    assert "watched" not in always
