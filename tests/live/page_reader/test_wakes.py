"""When a page is woken to look for something new."""

from __future__ import annotations

import msgspec
import pytest

from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
from dashboard.live.shared_drawings import Drawings
from leases.domain.watched_times import Connection, ConnectionState
from leases.wire.watch_decoding import Applied, Listed
from tests.live.page_reader.conftest import NOW, OTHER
from tests.support.board import KEY, a_lease


@pytest.mark.parametrize(("open_pages", "ticks"), [(50, 1), (51, 2), (200, 4), (5000, 6)])
def test_each_of_many_pages_is_woken_once_in_so_many_ticks(hub, open_pages, ticks):
    pages = [PageReader(hub, Drawings()) for _ in range(open_pages)]
    hub.pages.update(pages)
    woken = []
    for _ in range(ticks):
        hub.tick(NOW)
        woken += [page.number for page in pages if page.wake.is_set()]
        for page in pages:
            page.wake.clear()
    assert sorted(woken) == [page.number for page in pages]


def wakes(page, hub, update) -> bool:
    page.wake.clear()
    hub.publish(update)
    return page.wake.is_set()


def test_a_page_is_woken_by_what_it_shows_and_by_nothing_else(page, hub):
    def change(version, **spec):
        lease = a_lease(version=version, now=NOW)
        spec = msgspec.structs.replace(lease.spec, **spec)
        return hub.store.follow((Applied(msgspec.structs.replace(lease, spec=spec)),), NOW)

    page.show(Show({"row": [str(OTHER)]}))
    assert not wakes(page, hub, change("2", holder_identity="cp-2"))
    page.show(Show({"row": [str(KEY)]}))
    assert wakes(page, hub, change("3", holder_identity="cp-3"))
    page.show(Show({}, feed=hub.seq))
    assert wakes(page, hub, change("4", holder_identity="cp-4"))
    page.show(Show({}))
    assert not wakes(page, hub, change("5", holder_identity="cp-5"))
    listed = hub.store.replace(Listed((a_lease(version="6", now=NOW),), "6"), NOW)
    assert wakes(page, hub, listed)
    assert page.frame(NOW)["refetch"] is True


def test_a_page_drawn_without_a_live_watch_fetches_its_parts_once_it_is_live(page, hub):
    """They may say that nothing is known, and nothing may change when the watch begins."""

    def connect(state):
        hub.publish(hub.store.connect(Connection(state=state, since=NOW), NOW))

    page.show(Show())
    page.frame(NOW)
    connect(ConnectionState.LIVE)
    assert page.frame(NOW)["refetch"] is True
    connect(ConnectionState.LIVE)
    assert "refetch" not in (page.frame(NOW) or {})
    connect(ConnectionState.STALE)
    assert "refetch" not in page.frame(NOW)
    connect(ConnectionState.LIVE)
    assert page.frame(NOW)["refetch"] is True
