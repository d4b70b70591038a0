"""Which cluster a screen of several shows next."""

from __future__ import annotations

import pytest
from django.utils import timezone

from dashboard.board import running_board
from dashboard.parts.wall_turns import Troubled, Turns, next_cluster, turns_of
from leases.domain.watched_times import Connection, ConnectionState
from tests.support.board import a_lease, fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def feeds(board):
    for cluster in board.clusters.values():
        fill(cluster.store, a_lease())
        now = timezone.now()
        cluster.store.connection = Connection(state=ConnectionState.LIVE, since=now, heard_at=now)
    return list(running_board().feeds.values())


def test_calm_clusters_take_turns_in_order(feeds):
    now = timezone.now()
    assert [next_cluster(feeds, after, now) for after in ("", "a", "b", "gone")] == list("abaa")
    assert turns_of(feeds, "b", now).rest == "all 2 calm"
    assert next_cluster([], "a", now) is None


def test_a_cluster_in_trouble_stays(board, feeds):
    fill(board.clusters["b"].store, a_lease(holder=None, version="2"))
    now = timezone.now()
    assert [next_cluster(feeds, after, now) for after in ("", "a", "b")] == list("bbb")
    turns = turns_of(feeds, "b", now)
    assert ([(one.name, one.css) for one in turns.shown], turns.rest) == (
        [("b", "vacant")], "1 calm",
    )  # fmt: skip


def test_a_cluster_that_is_not_live_is_worse_than_a_vacant_election(board, feeds):
    fill(board.clusters["a"].store, a_lease(holder=None, version="2"))
    now = timezone.now()
    board.clusters["b"].store.connection = Connection(state=ConnectionState.STALE, since=now)
    assert [one.name for one in turns_of(feeds, "a", now).troubled] == ["b", "a"]


def test_the_line_names_those_that_it_has_room_for():
    some = [Troubled(0, -1, f"production-{number:02}", "expired") for number in range(5)]
    turns = Turns(some, 1, 7)
    assert (turns.shown, turns.rest) == (some[:2], "3 more, 2 calm")
    long = [Troubled(0, -1, "x" * 60, "expired")]
    assert Turns(long, 1, 1).shown == long, "the worst is always named"
