"""A page that one replica drew and that has its socket at another."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec
import pytest

from dashboard import clock
from dashboard.live import shared_drawings
from dashboard.live.messages import Show
from dashboard.live.page_reader import PageReader
from dashboard.live.publisher import ClusterHub
from dashboard.live.shared_drawings import Drawings
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import SteadyClock
from leases.tracking.store import Store
from leases.wire.watch_decoding import Listed
from tests.live.page_reader.conftest import NOW, OTHER, write
from tests.support.board import KEY, a_lease
from tests.support.values.incidents import open_incident

NEW = ObjectName("default", "new")
ID = re.compile(r'data-id="(\w+)"')
SECOND = 1_000_000_000


@pytest.fixture
def passes():
    """Let the process clock go on by so many seconds."""
    passed = [0]
    before = clock.use(SteadyClock(wall=lambda: 1_800_000_000 * SECOND, passed=lambda: passed[0]))

    def wait(seconds: float) -> None:
        passed[0] += int(seconds * SECOND)

    yield wait
    clock.use(before)


class Replicas:
    """Two processes that watch one cluster; `other` hears the same events a little later."""

    def __init__(self) -> None:
        self.one, self.other = (self._hub() for _ in range(2))

    @staticmethod
    def _hub() -> ClusterHub:
        store = Store("a")
        store.replace(Listed((a_lease(now=NOW), a_lease(OTHER, now=NOW)), "1"), NOW)
        return ClusterHub(store)

    def write(self, seconds: float, *, key: ObjectName = KEY, **spec: object) -> None:
        for hub in (self.one, self.other):
            write(hub, seconds=seconds, version=str(int(seconds * 10)), key=key, **spec)


class Page:
    """A browser whose fetches reach `one`, with its socket at `other`."""

    def __init__(self, replicas: Replicas, show: Show) -> None:
        self._replicas = replicas
        self._show = show
        self._reader = PageReader(replicas.other, Drawings())
        replicas.other.pages.add(self._reader)
        self.fetches = 0
        self.lines: list[str] = []
        self.fetch()

    def fetch(self) -> None:
        drawn_by = self._replicas.one
        drawn, (seq, sent) = drawn_by.moves.stamp, drawn_by.newest()
        draw = [shared_drawings.render_change(change, "line", NOW)
                for _, change in reversed(sent)]  # fmt: skip
        self.lines = [ID.findall(html)[0] for html in draw]
        self._show = msgspec.structs.replace(self._show, feed=seq, drawn=drawn)

    def opens(self) -> None:
        self._reader.show(self._show)

    def hears(self) -> dict:
        """The next frame, and what the page does then."""
        frame = self._reader.frame(clock.now()) or {}
        for html in frame.get("feed", ()):
            self.lines += [one for one in ID.findall(html) if one not in self.lines]
        if {"refetch", "incidents", "numbers", "list"}.intersection(
            name for name, value in frame.items() if value
        ):
            self.fetches += 1
            self.fetch()
            self._reader.show(self._show)
        return frame


@pytest.mark.parametrize("form", ["line", "number"])
def test_a_page_of_another_replica_settles_after_one_fetch(passes, form):
    replicas = Replicas()
    replicas.write(1, holder_identity="cp-2")
    passes(5)
    page = Page(replicas, Show(feed=0, feed_as=form, query=""))
    page.opens()
    for _ in range(5):
        passes(2.5)
        page.hears()
    assert page.fetches == 0
    replicas.write(60, key=NEW)
    replicas.other.incidents_moved([open_incident(KEY)])
    for _ in range(5):
        passes(2.5)
        page.hears()
    assert page.fetches == 1


def test_what_happens_before_the_socket_opens_is_told_once_and_no_line_comes_twice(passes):
    replicas = Replicas()
    replicas.write(1, holder_identity="cp-2")
    passes(5)
    page = Page(replicas, Show(feed=0, query="?q=new"))
    replicas.write(6, key=NEW)
    replicas.other.incidents_moved([open_incident(KEY)])
    page.opens()
    frame = page.hears()
    assert frame["list"]
    assert frame["incidents"]
    replicas.write(7, key=NEW, holder_identity="cp-3")
    for _ in range(5):
        passes(2.5)
        page.hears()
    assert page.fetches == 1
    assert len(page.lines) == len({*page.lines}) == 3


def test_a_page_that_the_replica_cannot_know_fetches_once(passes):
    replicas = Replicas()
    page = Page(replicas, Show(feed=0, query=""))
    passes(60)
    replicas.other = Replicas().other  # it was started again
    reader = page._reader = PageReader(replicas.other, Drawings())
    page.opens()
    assert page.hears()["refetch"]
    assert reader is page._reader
    for _ in range(5):
        passes(2.5)
        page.hears()
    assert page.fetches == 1


def test_a_line_is_the_same_for_two_clocks(passes):
    replicas = Replicas()
    for late, hub in enumerate((replicas.one, replicas.other)):
        hub.publish(hub.store.turn(NOW + timedelta(seconds=18, milliseconds=late)))
    lines = [
        {ID.findall(shared_drawings.render_change(change, "row", NOW))[0]
         for _, change in hub.recent} for hub in (replicas.one, replicas.other)
    ]  # fmt: skip
    assert lines[0] == lines[1]
    assert len(lines[0]) == 2
