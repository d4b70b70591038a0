"""The cells of a row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.parts.lease_row import time_since, wall_tile
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import WatchedLately
from tests.support.pauses import Cluster, watching
from tests.support.values.leases import after

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


async def test_a_wall_counts_from_when_it_ran_out_also_after_its_holder_was_taken_out() -> None:
    cluster = Cluster()
    holder = cluster.holders[0]
    holder.silent = 1000.0
    board = watching(cluster, 60)
    ran_out = board.of(0).phase_since
    assert (board.of(0).phase, ran_out < after(50)) == (Phase.EXPIRED, True)
    holder.identity, holder.version = "", cluster.version + 1
    board.arrive([holder.lease()])
    assert board.of(0).phase is Phase.VACANT
    assert wall_tile("c", board.of(0), after(61))["lasts"].since == ran_out.timestamp()
    board.stop()
