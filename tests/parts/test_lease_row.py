"""The cells of a row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.parts.lease_row import time_since
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import WatchedLately

NOW = datetime(2026, 11, 25, 0, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minutes", "began", "note"),
    [
        (15, "since 00:05:00", "since 00:05:00, 5 m 0 s of it not watched"),
        (30, "since 24 Nov", "since 24 Nov 2026 23:50:00, 20 m 0 s of it not watched"),
    ],
)
def test_a_term_of_another_day_began_on_a_day_in_its_cell(
    minutes: int, began: str, note: str
) -> None:
    watched = WatchedLately()
    live_since = NOW - timedelta(minutes=10)
    watched.record(Connection(state=ConnectionState.LIVE, since=live_since))
    view = time_since("a", NOW - timedelta(minutes=minutes), NOW, watched=watched)
    assert (view.began, view.note) == (began, note)


def test_a_term_says_how_much_of_it_was_expired_before_our_eyes_and_how_much_nobody_watched() -> (
    None
):
    watched = WatchedLately()
    watched.record(Connection(state=ConnectionState.LIVE, since=NOW - timedelta(minutes=10)))
    lapse = (NOW - timedelta(minutes=12), NOW - timedelta(minutes=9))
    view = time_since("a", NOW - timedelta(minutes=15), NOW, watched=watched, lapses=[lapse])
    assert view.length == "9 m 0 s"
    said = "3 m 0 s of it not watched, at most 3 m 0 s of it expired"
    assert view.note == f"since 00:05:00, {said}"
