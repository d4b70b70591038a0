"""The times in which nobody watched."""

from __future__ import annotations

from leases.domain.watched_times import UnwatchedTime, WatchedTime, WatchEnd, unwatched
from tests.support.values.leases import after


def watched(since: float, until: float, ended: str = "", detail: str = "") -> WatchedTime:
    return WatchedTime(since=after(since), until=after(until), ended=WatchEnd(ended), detail=detail)


def times(
    spans: list[WatchedTime], since: float = 0, until: float = 100
) -> list[tuple[float, float]]:
    return [
        ((gap.since - after(0)).total_seconds(), (gap.until - after(0)).total_seconds())
        for gap in unwatched(spans, since=after(since), until=after(until))
    ]


def test_times_outside_every_span_are_unwatched():
    assert times([watched(10, 40), watched(60, 90)]) == [(0, 10), (40, 60), (90, 100)]


def test_never_watched_is_not_watched_at_all():
    assert unwatched([], since=after(0), until=after(9)) == (
        UnwatchedTime(since=after(0), until=after(9), ended=None),
    )


def test_another_process_may_have_watched_meanwhile():
    assert times([watched(0, 50), watched(5, 20), watched(45, 100)]) == []


def test_a_pause_too_brief_to_matter_is_none():
    assert times([watched(-5, 40), watched(41.9, 120)]) == []


def test_a_pause_shows_how_the_watch_before_it_ended():
    spans = [watched(-20, -5, "stopped"), watched(30, 60, "lost", "no route to host")]
    first, second = unwatched(spans, since=after(0), until=after(100))
    assert (first.ended, first.since) == (WatchEnd.STOPPED, after(0))
    assert (second.ended, second.detail) == (WatchEnd.LOST, "no route to host")
