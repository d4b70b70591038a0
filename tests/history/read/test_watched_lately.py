"""Which times of the last day were watched: from history, then from the connection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leases.domain.figures import Held
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import Connection, ConnectionState, WatchedTime, WatchEnd
from leases.history.activity import Activity, WatchedLately
from leases.history.watched_spans import save

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minutes: float) -> datetime:
    return NOW + minutes * MINUTE


def live(minutes: float) -> Connection:
    return Connection(state=ConnectionState.LIVE, since=at(minutes))


def stale(minutes: float, heard: float) -> Connection:
    return Connection(state=ConnectionState.STALE, since=at(minutes), heard_at=at(heard))


def blind(watched: WatchedLately, since: float, until: float) -> list[tuple[float, float, bool]]:
    """Minutes from and to, and whether somebody had watched before."""
    return [
        ((span.since - NOW) / MINUTE, (span.until - NOW) / MINUTE, span.ended is not None)
        for span in watched.unwatched(at(since), at(until))
    ]


def test_unwatched_times_are_known_from_the_connection_alone():
    watched = WatchedLately()
    assert blind(watched, -60, 0) == [(-60, 0, False)]
    watched.record(live(-50))
    watched.record(live(-49))  # still the same watch
    watched.record(stale(-20, heard=-21))
    watched.record(stale(-19, heard=-21))
    assert blind(watched, -60, 0) == [(-60, -50, False), (-21, 0, True)]
    watched.record(live(-10))
    assert blind(watched, -60, 0) == [(-60, -50, False), (-21, -10, True)]
    assert blind(watched, -40, -25) == []


def test_it_is_watched_without_a_pause_since_it_began_or_began_anew():
    watched = WatchedLately()
    watched.record(live(-50))
    assert watched.since == at(-50)
    watched.record(stale(-20, heard=-20))
    watched.record(live(-20 + 1 / 60))
    assert watched.since == at(-50)
    watched.record(stale(-9, heard=-10))
    watched.record(live(-8))
    assert watched.since == at(-8)


@pytest.mark.django_db
def test_a_pause_before_a_quick_restart_is_known():
    spans = [(-90, -60), (-50, 0)]
    save(("prod", "p", WatchedTime(since=at(a), until=at(b))) for a, b in spans)
    watched = WatchedLately()
    watched.read("prod", NOW)
    watched.record(live(1 / 60))
    assert watched.since == at(-50)


def test_a_jump_of_the_clock_leaves_what_was_watched_what_it_was():
    watched = WatchedLately()
    watched.record(live(-50))
    watched.record(stale(-20, heard=-20))
    watched.record(live(-10))
    watched.clock_jumped(Jump(NOW, at(120)))
    assert blind(watched, 60, 120) == [(60, 70, False), (100, 110, True)]


@pytest.mark.django_db
def test_a_start_reads_what_an_earlier_run_watched():
    spans = [
        WatchedTime(since=at(-3000), until=at(-2000), ended=WatchEnd.STOPPED),
        WatchedTime(since=at(-120), until=at(-60), ended=WatchEnd.STOPPED),
    ]
    save(("a", "p", span) for span in spans)
    activity = Activity()
    activity.read("a", NOW)
    watched = activity.watched
    assert blind(watched, -180, 0) == [(-180, -120, True), (-60, 0, True)]
    watched.record(live(5))
    assert blind(watched, -180, 10) == [(-180, -120, True), (-60, 5, True)]
    # How long a term lasted is known of all days: 1,000 min of it, then 60, and 5.
    assert watched.held(at(-4000), at(10)) == Held(1065 * 60, 2945 * 60)
    assert watched.held(at(-100), at(10)) == Held(45 * 60, 65 * 60)
    watched.record(stale(20, heard=20))
    watched.record(live(20.02))
    assert watched.held(at(6), at(30)) == Held(24 * 60, 0)
    watched.stood_still(at(31), at(33))
    assert watched.held(at(30), at(40)) == Held(8 * 60, 2 * 60)
    watched.clock_jumped(Jump(at(40), at(50)))
    assert watched.held(at(40), at(50)) == Held(8 * 60, 2 * 60)
