"""What the open pages of all clusters are told: each cluster is drawn once for all of them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from django.utils.html import format_html

from dashboard import clock
from dashboard.feed import ClusterFeed, Failed, log_failure
from dashboard.live.messages import Show
from dashboard.live.page_reader import HEARTBEAT
from dashboard.live.shared_drawings import ClusterMenu, MenuReader
from dashboard.pages.fleet import drawings_of, ids_of
from leases.domain.watched_times import ConnectionState
from leases.worker_threads import WorkerThreads

TICK = 0.25  # seconds between two looks at what moved
SPACING = 1.0  # seconds between two drawings of one cluster
EVERY = 10.0  # seconds after which a cluster is drawn though nothing moved: sums of time grow
FIRST_MOVES = [0.0]  # of a clock that was never set
Stamp = tuple[object, ...]

_threads = WorkerThreads("fleet", 1)


def _stamp(feed: ClusterFeed, now: datetime) -> Stamp:
    """Differs when a strip may: read before the strip is."""
    told = feed.store.connection.shown(now)
    moves = feed.moves.number, feed.incident_turn, len(feed.clock_moves), feed.server_version
    return *moves, told.state, told.since, told.detail, feed.store.synced


class FleetHub:
    """The clusters as last drawn, and the sockets that get them."""

    def __init__(self, feeds: Mapping[str, ClusterFeed], menu: ClusterMenu) -> None:
        self.feeds, self.menu = feeds, menu
        self.pages: set[FleetReader] = set()
        self.turn = asyncio.Lock()
        self.ends: set[Callable[[str], None]] = set()
        self.failed: Failed = log_failure
        self.problem: Callable[[], str | None] = lambda: None
        self.awake = asyncio.Event()  # while a page is open
        self.drawn: dict[str, tuple[int, str]] = {}  # by id: number of the drawing, and HTML
        self._numbers = count(1)
        self._known: dict[str, tuple[Stamp, float]] = {}

    @property
    def clock_moves(self) -> Sequence[float]:
        feed = next(iter(self.feeds.values()), None)
        return FIRST_MOVES if feed is None else feed.clock_moves

    def join(self, page: "FleetReader") -> None:
        self.pages.add(page)
        self.awake.set()

    async def run(self) -> None:
        """Draw what moves while a page is open."""
        while True:
            await self.awake.wait()
            await self.tick(clock.now())
            if not self.pages:
                self.awake.clear()
                self.drawn, self._known = {}, {}
            await asyncio.sleep(TICK)

    async def tick(self, now: datetime) -> None:
        """Draw the clusters that are due, and wake the pages."""
        self.menu.look(now)
        due = {name: feed for name, feed in self.feeds.items() if self._is_due(name, feed, now)}
        found = await _threads.run(self._draw, due, now) if due else {}
        for name in self._known.keys() - self.feeds.keys():
            del self._known[name]
            gone = format_html('<p class="muted">{} is watched no longer.</p>', name)
            found |= dict.fromkeys(ids_of(name), str.__str__(gone))
        for place, html in found.items():
            if self.drawn.get(place, (0, ""))[1] != html:
                self.drawn[place] = (next(self._numbers), html)
        for page in self.pages:
            page.wake.set()

    def _is_due(self, name: str, feed: ClusterFeed, now: datetime) -> bool:
        """Whether to draw it now; notes that it is drawn."""
        stamp, moment = _stamp(feed, now), time.monotonic()
        before, drawn_at = self._known.get(name, (None, float("-inf")))
        if moment - drawn_at < (EVERY if stamp == before else SPACING):
            return False
        self._known[name] = (stamp, moment)
        return True

    def _draw(self, due: Mapping[str, ClusterFeed], now: datetime) -> dict[str, str]:
        """Runs in a thread. A cluster that cannot be drawn stays as it was; the others go on."""
        found: dict[str, str] = {}
        for feed in due.values():
            try:
                found |= drawings_of(feed, now)
            except Exception as error:
                self.failed("strips", error)
        return found


class FleetReader:
    """What one page of all clusters still lacks, without its socket."""

    def __init__(self, hub: FleetHub) -> None:
        self._hub = hub
        self._menu = MenuReader(hub.menu)
        self._sent: dict[str, int] = {}
        self._names = frozenset(hub.feeds)  # the page was drawn with, but for the last moment
        self._jumps: int | None = None
        self._spoke_at: float | None = None
        self._answers_show = False
        self.wake = asyncio.Event()

    def show(self, wanted: Show) -> None:
        """The page is there: all of it is sent once as it is now."""
        self._sent, self._answers_show = {}, True
        self._menu.wanted = wanted.clusters
        if self._jumps is None:
            drawn = len(self._hub.clock_moves) - 1
            self._jumps = drawn if wanted.jumps is None else wanted.jumps
        self.wake.set()

    def frame(self, now: datetime) -> dict[str, Any] | None:
        """What the page lacks; None when it lacks nothing and has heard from us lately."""
        if self._jumps is None:  # not before the page said by which clock it was drawn
            return None
        frame: dict[str, Any] = {"regions": self._regions(), "clusters": self._menu.news()}
        if self._names != (names := frozenset(self._hub.feeds)):
            self._names, frame["list"] = names, True
        if self._answers_show:
            self._answers_show, frame["shown"] = False, True
        frame = {name: value for name, value in frame.items() if value}
        moment = time.monotonic()
        if not frame and self._spoke_at is not None and moment - self._spoke_at < HEARTBEAT:
            return None
        self._spoke_at = moment
        return self._moved() | frame | self._state(now)

    def _regions(self) -> dict[str, str]:
        fresh = {
            name: html
            for name, (number, html) in self._hub.drawn.items()
            if self._sent.get(name) != number
        }
        self._sent |= {name: self._hub.drawn[name][0] for name in fresh}
        return fresh

    def _moved(self) -> dict[str, Any]:
        """Lets the page follow a wall clock that was set."""
        moves, known = self._hub.clock_moves, self._jumps
        self._jumps = len(moves) - 1
        if known == self._jumps:
            return {}
        own = known is not None and 0 <= known < len(moves)
        return {"moved": moves[-1] - moves[known or 0] if own else 0.0, "jumps": self._jumps}

    def _state(self, now: datetime) -> dict[str, Any]:
        """The page itself is live while it hears this; each strip says whether its cluster is."""
        moment = now.timestamp()
        connection = {
            "state": ConnectionState.LIVE.value,
            "since": moment,
            "as_of": moment,
            "detail": "",
            "behind_seconds": None,
            "problem": self._hub.problem() or "",
        }
        return {"now": moment, "seq": 0, "connection": connection}
