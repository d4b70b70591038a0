"""Each page hears the state of all clusters for its menu."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.live import shared_drawings
from dashboard.live.messages import Show
from dashboard.live.page_reader import Drawings, PageReader
from dashboard.live.publisher import Publisher
from dashboard.live.shared_drawings import ClusterMenu, MenuReader
from leases.domain.watched_times import Connection, ConnectionState
from leases.tracking.store import Store
from tests.support.board import a_lease, fill

NOW = datetime(2026, 11, 20, 3, 12, 40, tzinfo=UTC)


@pytest.fixture
def stores() -> dict[str, Store]:
    stores = {"a": Store("a"), "b": Store("b")}
    for store in stores.values():
        store.connection = Connection(state=ConnectionState.LIVE, since=NOW)
    return stores


def lose(store: Store, at: datetime = NOW) -> None:
    store.connection = Connection(state=ConnectionState.STALE, since=at, heard_at=at)


def test_a_state_is_drawn_with_its_word_and_only_when_it_changes(stores):
    menu = ClusterMenu(stores)
    menu.look(NOW)
    first = menu.drawn
    assert "live, 0 Leases" in first["a"]
    assert "is-held" in first["a"]
    menu.look(NOW)
    assert menu.drawn is first
    lose(stores["b"])
    fill(stores["a"], a_lease())
    menu.look(NOW)
    assert "live, 1 Lease\n" in menu.drawn["a"]
    assert "03:12:40, reconnecting" in menu.drawn["b"]
    assert "is-expired" in menu.drawn["b"]
    menu.look(NOW + timedelta(days=1))
    assert "20 Nov 2026 03:12:40, reconnecting" in menu.drawn["b"]


def test_of_many_clusters_some_are_looked_at_each_time(stores, monkeypatch):
    monkeypatch.setattr(shared_drawings, "LOOKS_AT_ONCE", 1)
    monkeypatch.setattr(shared_drawings, "LOOKS_PER_SECOND", 0)
    menu = ClusterMenu(stores)
    menu.look(NOW)
    assert set(menu.drawn) == {"a"}
    menu.look(NOW)
    assert set(menu.drawn) == {"a", "b"}


def test_a_page_gets_each_state_once(stores):
    menu = ClusterMenu(stores)
    page = MenuReader(menu)
    menu.look(NOW)
    assert page.news() == {}, "a page without a menu"
    page.wanted = True
    assert set(page.news()) == {"a", "b"}
    assert page.news() == {}
    lose(stores["b"])
    menu.look(NOW)
    assert set(page.news()) == {"b"}


def test_the_pages_of_one_cluster_hear_of_the_others(stores):
    hubs = Publisher(stores).hubs
    page = PageReader(hubs["a"], Drawings())
    hubs["a"].pages.add(page)
    page.show(Show(clusters=True))
    hubs["a"].tick(NOW)
    assert set(page.frame(NOW)["clusters"]) == {"a", "b"}
    lose(stores["b"])
    hubs["a"].tick(NOW)
    frame = page.frame(NOW)
    assert set(frame["clusters"]) == {"b"}
    assert "reconnecting" in frame["clusters"]["b"]
