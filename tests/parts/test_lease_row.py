"""The cells of a row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dashboard.parts.flapping import FlapView
from dashboard.parts.lease_row import Freshness, HeldView, RowView, time_since, wall_tile
from dashboard.parts.names import HolderView
from dashboard.templatetags.board import lease_row
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import WatchedLately
from tests.support.pauses import Cluster, watching
from tests.support.values.leases import after

NOW = datetime(2026, 11, 25, 0, 20, tzinfo=UTC)
HOSTILE = '"><script>1</script>&'


@pytest.mark.parametrize(
    "state",
    [
        {"flap": FlapView(HOSTILE, HOSTILE, HOSTILE, HOSTILE)},
        {"phase": "expired", "flap": FlapView(HOSTILE, HOSTILE, HOSTILE, HOSTILE)},
        {"phase": "vacant", "fresh": None, "vacant_since": HOSTILE, "excuse": HOSTILE},
        {"phase": HOSTILE, "skipped": HOSTILE},
    ],
)
def test_texts_of_a_row_are_escaped(state: dict[str, Any]) -> None:
    row = RowView(
        key=HOSTILE, namespace=HOSTILE, name=HOSTILE, shown=((HOSTILE, True), (HOSTILE, False)),
        domain=HOSTILE, url=HOSTILE, phase="held", kind=HOSTILE, kind_reason=HOSTILE,
        holder=HolderView(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 3), vacant_since="",
        held=HeldView(HOSTILE, 1.0, 1.0, since=2.0, began=HOSTILE, note=HOSTILE),
        fresh=Freshness(1.0, 15.0, 0.5, HOSTILE, 50.0, 20.0, 1.0, HOSTILE, HOSTILE),
        transitions=HOSTILE,
    )  # fmt: skip
    drawn = lease_row(replace(row, **state))
    assert "<script>" not in drawn
    assert "&quot;&gt;&lt;script&gt;1&lt;/script&gt;&amp;" in drawn


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
