"""What the open pages of all clusters are told: each cluster is drawn once for all of them."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Self

import msgspec
from django.utils.html import format_html

from dashboard import clock
from dashboard.config import VERSION
from dashboard.feed import PROCESS, ClusterFeed, Failed, log_failure
from dashboard.live.messages import Show
from dashboard.live.page_reader import HEARTBEAT
from dashboard.live.shared_drawings import ClusterMenu, InTurn, MenuReader
from dashboard.pages.fleet import drawings_of, ids_of, told
from dashboard.pages.fleet_wall import WallRow, wall_parts, wall_row
from dashboard.parts.across import chosen_by, partly_live, silent_states
from dashboard.parts.fleet_row import ROW, FleetRow, latest_row
from leases.domain.watched_times import ConnectionState
from leases.worker_threads import WorkerThreads

TICK, SOON = 0.15, 0.05  # seconds between two looks at what moved; the same once something did
CLUSTERS_PER_SECOND = 4000  # at most: of very many clusters the looks are further apart
SPACING, LONG_SPACING = 0.3, 1.0  # seconds between two drawings of one cluster
MANY = 30  # clusters in which something happened: then they are drawn less often
DRAWN_AT_ONCE = 10  # clusters, before the pages get them
AGAIN = 10.0  # seconds until one is tried again that could not be drawn
FIRST_MOVES = [0.0]  # of a clock that was never set
NEWS = "news"  # in the address of the socket of a page that lists what happens in clusters
Drawn = dict[str, tuple[int, str]]  # by id: number of the drawing, and HTML
# By cluster: what was drawn last, and when; None: it could not be drawn.
Known = dict[str, tuple[FleetRow | None, float]]

_threads = WorkerThreads("fleet", 1)


class FleetHub:
    """The clusters as last drawn, and the sockets that get them."""

    def __init__(self, feeds: Mapping[str, ClusterFeed], menu: ClusterMenu) -> None:
        self.feeds, self.menu = feeds, menu
        self.names = frozenset(feeds)
        self.silent: dict[str, ConnectionState] = {}  # those not live, as of the last tick
        self.trouble = ""  # why history is not whole, as of the last tick
        self.pages: set[FleetReader] = set()
        self.turn = asyncio.Lock()
        self.ends: set[Callable[[str], None]] = set()
        self.failed: Failed = log_failure
        self.problem: Callable[[], str | None] = lambda: None
        self.awake = asyncio.Event()  # while a page is open
        self.drawn: Drawn = {}
        self.placed = 0  # drawings, up to now
        self.walls: dict[tuple[str, ...], Drawn] = {}  # by the clusters that they show; () is all
        self._rows: dict[str, WallRow] = {}  # while a wall is open
        self._known: Known = {}
        self._told: set[str] = set()  # clusters in which something happened since they were drawn
        self._news = asyncio.Event()  # something happened since the last look
        self._in_turn = InTurn()

    @property
    def clock_moves(self) -> Sequence[float]:
        feed = next(iter(self.feeds.values()), None)
        return FIRST_MOVES if feed is None else feed.clock_moves

    def look_names(self) -> frozenset[str]:
        """The names of the clusters: the same object while they are the same."""
        names = frozenset(self.feeds)
        if names != self.names:
            self.names = names
        return self.names

    def notice(self, cluster: str, lost: bool) -> None:
        """Something happened there; `lost`: in part nobody says what."""
        self._told.add(cluster)
        self._news.set()
        for page in self.pages:
            page.notice(cluster, lost=lost)

    def join(self, page: "FleetReader") -> None:
        if page.draws and not any(
            other.draws and (other.wall is None) is (page.wall is None) for other in self.pages
        ):
            self._known = {}  # nothing was drawn in its form, not by what is drawing now either
        self.pages.add(page)
        self._look_who_is_silent(clock.now())  # nobody did while no page was open
        self.awake.set()

    async def run(self) -> None:
        """Draw what moves while a page is open."""
        while True:
            await self.awake.wait()
            self._news.clear()
            await self.tick(clock.now())
            if not self.pages:
                self.awake.clear()
                self.drawn, self.walls, self._rows, self._known = {}, {}, {}, {}
            await asyncio.sleep(max(SOON, len(self.feeds) / CLUSTERS_PER_SECOND))
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK - SOON):
                    await self._news.wait()

    async def tick(self, now: datetime) -> None:
        """Draw the clusters that are due, and wake the pages."""
        self.look_names()
        self.menu.look(now)
        self.trouble = self.problem() or ""
        self._look_who_is_silent(now)
        due = [*self._due(now).items()] if any(page.draws for page in self.pages) else []
        for first in range(0, len(due), DRAWN_AT_ONCE):
            some = dict(due[first : first + DRAWN_AT_ONCE])
            self._place(await _threads.run(self._draw, some, now, self._known))
        await self._draw_walls(moved=bool(due) or self._known.keys() != self.feeds.keys())
        gone: Drawn = {}
        for name in self._known.keys() - self.feeds.keys():
            del self._known[name]
            html = format_html('<p class="muted">{} is watched no longer.</p>', name)
            gone |= dict.fromkeys(ids_of(name), (told.count(), str.__str__(html)))
        self._place(gone)

    def _place(self, drawn: Drawn) -> None:
        """Give the pages these drawings, or let them say that they are there."""
        for place, drawing in drawn.items():
            if self.drawn.get(place) != drawing:
                self.drawn[place] = drawing
                self.placed += 1
        for page in self.pages:
            page.wake.set()

    def _look_who_is_silent(self, now: datetime) -> None:
        self.silent = silent_states((feed.store for feed in self.feeds.values()), now)

    async def _draw_walls(self, *, moved: bool) -> None:
        wanted = {page.wall for page in self.pages if page.wall is not None}
        self.walls = {clusters: self.walls.get(clusters, {}) for clusters in wanted}
        for clusters, drawn in self.walls.items():
            if moved or not drawn:
                some = [
                    row
                    for name, row in self._rows.items()
                    if name in self.feeds and (not clusters or name in clusters)
                ]
                for place, html in (await _threads.run(self._draw_wall, some)).items():
                    if drawn.get(place, (0, ""))[1] != html:
                        drawn[place] = told.count(), html
                        self.placed += 1

    def _draw_wall(self, rows: Sequence[WallRow]) -> dict[str, str]:
        try:
            return wall_parts(rows)
        except Exception as error:
            self.failed("wall", error)
            return {}

    def _due(self, now: datetime) -> dict[str, ClusterFeed]:
        """Those to draw now: where something happened at once, of the others each in its turn."""
        due, moment = {}, time.monotonic()
        spacing = SPACING if len(self._told) <= MANY else LONG_SPACING
        new = self.feeds.keys() - self._known.keys()
        for name in {*self._told, *new, *self._in_turn.some(self.feeds)}:
            feed = self.feeds.get(name)
            drawn, at = self._known.get(name, (None, float("-inf")))
            if feed is None or (
                drawn is not None
                and drawn.is_current(now)
                and drawn is feed.drawn.get(ROW)  # else a page drew what was so for a moment alone
            ):
                self._told.discard(name)
            elif moment - at >= (AGAIN if drawn is None else spacing):
                self._told.discard(name)
                due[name] = feed
            else:
                self._told.add(name)  # it waits for no other turn
        return due

    def _draw(self, due: Mapping[str, ClusterFeed], now: datetime, known: Known) -> Drawn:
        """Runs in a thread. A cluster that cannot be drawn stays as it was; the others go on."""
        found: Drawn = {}
        walls = {page.wall is not None for page in tuple(self.pages) if page.draws}
        for name, feed in due.items():
            known[name] = None, time.monotonic()
            try:
                row = latest_row(feed, now)
                if True in walls:
                    self._rows[row.cluster] = wall_row(row)
                if False in walls:
                    for place, drawing in drawings_of(row).items():
                        found[place] = drawing.number, drawing.html
                known[name] = row, time.monotonic()
            except Exception as error:
                self.failed("strips", error)
        return found


class FleetReader:
    """What one page of all clusters still lacks, without its socket. `wall` are the clusters
    of a wall.
    """

    draws = True  # whether it shows clusters

    def __init__(self, hub: FleetHub, wall: tuple[str, ...] | None = None) -> None:
        self._hub, self.wall = hub, wall
        self._menu = MenuReader(hub.menu)
        self._sent: dict[str, int] = {}
        self._has = 0  # it has the drawings up to this number, or newer ones
        self._placed: int | None = None  # when it was sent to last
        self._names = hub.look_names()  # the page was drawn with, but for the last moment
        self._jumps: int | None = None
        self._spoke_at: float | None = None
        self._answers_show = False
        self.wake = asyncio.Event()

    def show(self, wanted: Show) -> None:
        """The page is there: what moved since its drawing is sent once as it is now."""
        self._sent, self._placed, self._answers_show = {}, None, True
        self._has = told.number_of(wanted.drawn or "") if self.wall is None else 0
        self._menu.wanted = wanted.clusters and self.wall is None
        if self._jumps is None:
            drawn = len(self._hub.clock_moves) - 1
            self._jumps = drawn if wanted.jumps is None else wanted.jumps
        self.wake.set()

    def frame(self, now: datetime) -> dict[str, Any] | None:
        """What the page lacks; None when it lacks nothing and has heard from us lately."""
        if self._jumps is None:  # not before the page said by which clock it was drawn
            return None
        frame = self._news() | {"clusters": self._menu.news()}
        if self._answers_show:
            self._answers_show, frame["shown"], frame["version"] = False, True, VERSION
        frame = {name: value for name, value in frame.items() if value}
        moment = time.monotonic()
        if not frame and self._spoke_at is not None and moment - self._spoke_at < HEARTBEAT:
            return None
        self._spoke_at = moment
        return self._moved() | frame | self._state(now)

    def notice(self, cluster: str, *, lost: bool) -> None:
        """Something happened there: for pages that draw no cluster."""

    def _clusters(self) -> Collection[str]:
        """The clusters of which the page speaks."""
        return self._hub.names.intersection(self.wall) if self.wall else self._hub.names

    def _news(self) -> dict[str, Any]:
        news: dict[str, Any] = {"regions": self._regions()}
        if self._names is not self._hub.names:
            self._names, news["list"] = self._hub.names, True
        return news

    def _regions(self) -> dict[str, str]:
        if self._placed == self._hub.placed:
            return {}
        self._placed = self._hub.placed
        drawn = self._hub.drawn if self.wall is None else self._hub.walls.get(self.wall, {})
        fresh = {
            name: html
            for name, (number, html) in drawn.items()
            if number > self._has and self._sent.get(name) != number
        }
        self._sent |= {name: drawn[name][0] for name in fresh}
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
        """The page itself is live while it hears this; `partly_live` says how many clusters are."""
        moment = now.timestamp()
        connection = {
            "state": ConnectionState.LIVE.value,
            "since": moment,
            "as_of": moment,
            "detail": "",
            "behind_seconds": None,
            "partly_live": partly_live(self._hub.silent, self._clusters()),
            # Its sentences name clusters: not to a wall of others.
            "problem": "" if self.wall else self._hub.trouble,
        }
        return {"now": moment, "seq": 0, "connection": connection}


class HeardOf(msgspec.Struct):
    """What a page knows of a cluster: its numbers of changes and incidents, and its connection."""

    seq: int
    turn: int
    state: ConnectionState

    @classmethod
    def now(cls, feed: ClusterFeed) -> Self:
        return cls(feed.seq, feed.incident_turn, feed.store.connection.state)


class NewsReader(FleetReader):
    """What happened in the clusters of one page that lists changes or incidents of several.

    Costs nothing while nothing happens in them, however many they are.
    """

    draws = False

    def __init__(self, hub: FleetHub) -> None:
        super().__init__(hub)
        self._query: str | None = None
        self._drawn: str | None = None
        self._heard: dict[str, HeardOf] = {}
        self._touched: set[str] = set()
        self._refetch = self._counts = self._again = False

    def show(self, wanted: Show) -> None:
        """Go on from the moment of the page's drawing, and from what it was told since."""
        super().show(wanted)
        self._query, self._counts = wanted.query, wanted.feed is not None
        before, self._heard = self._heard, {}
        # A new drawing by this process may lack what history did not have yet: tell it again.
        own = wanted.drawn != self._drawn and (wanted.drawn or "").startswith(f"{PROCESS}-")
        self._drawn, self._again = wanted.drawn, own
        for name in self._chosen():
            feed = self._hub.feeds[name]
            heard = HeardOf.now(feed)
            self._touched.add(name)
            if wanted.drawn is not None and (move := feed.moves.first_since(wanted.drawn)):
                heard.seq, heard.turn = move.seq, move.turn
            if (known := before.get(name)) is not None and not own:
                heard.seq, heard.turn = max(heard.seq, known.seq), max(heard.turn, known.turn)
            elif known is None and wanted.drawn is not None:
                self._refetch |= not feed.moves.reaches(wanted.drawn)
            self._heard[name] = heard

    def _chosen(self) -> frozenset[str]:
        return chosen_by(self._query).intersection(self._hub.feeds)

    def _clusters(self) -> Collection[str]:
        return self._heard.keys()

    def notice(self, cluster: str, *, lost: bool) -> None:
        if cluster in self._heard:
            self._refetch |= lost
            self._touched.add(cluster)
            self.wake.set()

    def _news(self) -> dict[str, Any]:
        touched, self._touched = self._touched, set()
        news, changes = dict.fromkeys(("incidents", "recount"), False), 0
        if self._names is not (names := self._hub.names):
            self._names, news["recount"] = names, True
            some = self._chosen()
            self._heard = {
                name: self._heard.get(name) or HeardOf.now(self._hub.feeds[name]) for name in some
            }
        for name in touched.intersection(self._heard, names):
            feed, heard = self._hub.feeds[name], self._heard[name]
            now = self._heard[name] = HeardOf.now(feed)
            if now.seq != heard.seq:
                fresh = sum(seq > heard.seq for seq, _ in feed.recent)
                self._refetch |= fresh == feed.recent.maxlen
                changes += fresh
            news["incidents"] |= now.turn != heard.turn
            news["recount"] |= now.state is not heard.state
        news |= {"refetch": self._refetch, "again": self._again}
        self._refetch = self._again = False
        return news | {"changes": changes if self._counts else 0}

    def _moved(self) -> dict[str, Any]:
        moved = super()._moved()
        return moved | {"refetch": True} if moved else moved  # every moment on it moved

    def _state(self, now: datetime) -> dict[str, Any]:
        return super()._state(now) | {"drawn": f"{PROCESS}-{now.timestamp():.3f}"}
