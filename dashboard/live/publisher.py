"""Send the trackers' updates to the open pages and the public feed. Each message is made once.

A page gets the difference between what it was last sent and the store's present state: a slow page
skips what is out of date, and a page that comes back misses nothing. The public feed is numbered.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from dashboard import clock
from dashboard.access.known_rights import Right, TokenRight, UserRight
from dashboard.feed import KEPT_CHANGES, created_in
from dashboard.live import messages
from dashboard.live.fleet import FleetHub
from dashboard.live.page_reader import PageReader
from dashboard.live.shared_drawings import ClusterMenu, HubView, SharedRegions
from dashboard.live.shared_pages import SharedPages
from dashboard.pages.nodes import NodeGrid, grids_of
from dashboard.watched_cluster import ByCluster
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Incident
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import Missing
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update

MAX_SOCKETS = 500
TOO_MANY = f"{MAX_SOCKETS} live connections are open for this account. Close some pages."

SocketOwner = tuple[str, int]


class SocketShare:
    """Count open sockets per owner, so that no account takes all sockets of the port."""

    def __init__(self) -> None:
        self._open: Counter[SocketOwner] = Counter()

    def take(self, right: Right) -> bool:
        """Count one more, or return False at the limit."""
        holder = _holder(right)
        if self._open[holder] >= MAX_SOCKETS:
            return False
        self._open[holder] += 1
        return True

    def give_back(self, right: Right) -> None:
        holder = _holder(right)
        self._open[holder] -= 1
        if not self._open[holder]:
            del self._open[holder]


def _holder(right: Right) -> SocketOwner:
    if isinstance(right, TokenRight):
        return ("token", right.token_id)
    return ("user", right.user_id) if isinstance(right, UserRight) else ("wall", right.link_id)


FEED_QUEUE = 256
MAX_CHANGES_SENT = 500
MAX_LEASES_SENT = 5000  # of the incidents in one frame
TICK = 0.25  # seconds: how often freshness alone is sent
WOKEN = 50  # pages in one tick; with more open, each is woken in every second, third, … tick
RAREST = 6  # … and at the latest in this one, before it takes the server for gone
RATE_WINDOW = 5.0
LATECOMERS = 40  # ticks from the drawing of a page to its socket, at most


def _first_sight(change: Change) -> bool:
    """Whether a list found the Lease: `created` then lies in the past, in its place in history."""
    return change.inferred and change.change is ChangeType.CREATED


class FeedReader:
    """One program on the public feed. One that does not keep up loses the oldest frames and sees
    the gap."""

    def __init__(self) -> None:
        self.frames: deque[str] = deque(maxlen=FEED_QUEUE)
        self.wake = asyncio.Event()

    def put(self, frame: str) -> None:
        self.frames.append(frame)
        self.wake.set()


class ClusterHub(HubView):
    """The messages about one cluster, and the sockets that get them."""

    def __init__(self, store: Store, menu: ClusterMenu | None = None) -> None:
        super().__init__(store)
        self.menu = menu or ClusterMenu({store.cluster: store})
        self.shared = SharedRegions(self._report_failure)
        self.grids = grids_of(self)
        self._counted: tuple[tuple[int, int], messages.Counts] = ((-1, -1), {})
        self._figured: tuple[int, messages.Figures] = (-1, {})
        self.open_pages = SharedPages()
        self.pages = self.open_pages.readers
        self._ticks = 0
        # Some changes come in no frame, or were found by a list: pages fetch them, once there.
        self._only_in_history = False
        self._unwritten_lines = 0  # changes that frames brought and history may lack
        self._fetch_again = (0, 0)  # pages drawn up to this seq, that come before this tick
        self.feeds: set[FeedReader] = set()
        self.ends: set[Callable[[str], None]] = set()  # each closes one socket, with a reason
        self.awake = asyncio.Event()  # while there is something to tick for
        self._events = 0
        self._counted_since = time.monotonic()

    @property
    def readers(self) -> Mapping[str, int]:
        return {"page": len(self.open_pages), "feed": len(self.feeds)}

    def _report_failure(self, part: str, error: Exception) -> None:
        self.failed(part, error)

    def publish(self, update: Update) -> None:
        self._count(len(update.renewed) + len(update.redraw))
        if update.connection is not None:
            self.activity.watched.record(update.connection)
        missed = update.missed
        if missed is not None and missed.why is Missing.STOOD_STILL and missed.since is not None:
            self.activity.watched.stood_still(missed.since, missed.until)
        seq = self.seq
        if update.changes:
            self.activity.note(update.changes, self.store.marks)
            self._publish(update)
        if update.changes or update.redraw or update.removed:
            self.moves.add(
                seq=seq,
                turn=self.incident_turn,
                keys=(*update.redraw, *update.removed),
                created=created_in(update),
            )
        if update.redraw or update.removed or update.listed or update.connection:
            self.shared.moved()
            self.told(False)
            for grid in self.grids.values():
                grid.notice(update)
            for page in self.pages:
                page.notice(update)

    def _count(self, events: int) -> None:
        """Count events for the rate that pages show."""
        now = time.monotonic()
        if (passed := now - self._counted_since) >= RATE_WINDOW:
            self.events_per_second = self._events / passed
            self._events, self._counted_since = 0, now
        self._events += events

    def _publish(self, update: Update) -> None:
        """Send one frame; for too many changes leave a gap, which makes readers fetch."""
        sent = update.changes if len(update.changes) <= MAX_CHANGES_SENT else ()
        seq = self.seq + (1 if sent else 2)
        shown = [change for change in sent if not _first_sight(change)]
        # What nobody watched also moves parts that are drawn from history alone.
        unwatched = update.listed or any(change.inferred for change in update.changes)
        if unwatched or len(shown) < len(update.changes):
            self._fetch_once_written()
        self._unwritten_lines += len(shown)
        if self._unwritten_lines > KEPT_CHANGES:  # the first of them are kept nowhere
            self._fetch_once_written()
        self.recent.extend((seq, change) for change in shown)
        # Nothing explains what a first list found: nobody watched before.
        self.explainable.add(
            [one for one in update.changes if not (update.first and _first_sight(one))]
        )
        self.seq = seq  # last, so that `newest` gives no number without its changes
        self._send(update.now, sent)

    def _fetch_once_written(self) -> None:
        self._only_in_history = True
        self.awake.set()

    def _send(
        self, now: datetime, changes: Sequence[Change] = (), incidents: Sequence[Incident] = ()
    ) -> None:
        if self.feeds:
            counts = messages.flatten(self.store.counts())
            frame = messages.changes_message(
                seq=self.seq, now=now, changes=changes, counts=counts, incidents=incidents
            )
            for feed in self.feeds:
                feed.put(frame)

    def publish_incidents(self, news: Sequence[Incident], now: datetime) -> None:
        """Send incidents that began, changed or ended; for too many Leases leave a gap."""
        sent = news if sum(len(one.leases) for one in news) <= MAX_LEASES_SENT else ()
        self.seq += 1 if sent else 2
        self._send(now, incidents=sent)
        self.incidents_moved(news)

    def incidents_moved(self, incidents: Iterable[Incident] = ()) -> None:
        """Draw again what speaks of incidents: these began, changed or ended."""
        self.moves.add(seq=self.seq, turn=self.incident_turn, incidents=True)
        self.incident_turn += 1
        explained = self.explainable.explain(incidents, self.recent)
        if len(explained) > KEPT_CHANGES:
            self._fetch_once_written()
        self.explained.extend((self.incident_turn, change) for change in explained)
        self.shared.moved()
        self.told(False)
        for page in self.pages:
            page.wake.set()

    def clock_jumped(self, jump: Jump) -> None:
        """Move the moments on pages with the wall clock at once."""
        self.activity.clock_jumped(jump)
        self.nodes.clock_jumped(jump)
        self.clock_moves.append(self.clock_moves[-1] + jump.by.total_seconds())
        self.shared.clock_jumped()
        for page in self.pages:
            page.refetch()  # every moment on it moved

    def is_own(self, feed: int) -> bool:
        """Whether this process gave this number."""
        return self.first_seq <= feed <= self.seq

    def is_outdated(self, feed: int) -> bool:
        """Whether a page drawn at this number may lack changes that no frame will bring."""
        if not self.is_own(feed):
            return True  # drawn before this process started
        seq, tick = self._fetch_again
        return feed <= seq and self._ticks < tick

    def counts(self, now: datetime) -> messages.Counts:
        """The counts, made once for all pages."""
        stamp = self.store.seq, len(self.flappers.at(self.store.connection.as_of(now)))
        if self._counted[0] != stamp:
            counts = messages.flatten_all(self.store.counts(), self.store.excused())
            counts["flapping"] = stamp[1]
            self._counted = (stamp, counts)
        return self._counted[1]

    async def run(self) -> None:
        """Wake the pages, to send freshness and to show that the server lives."""
        try:
            while True:
                await self.awake.wait()
                await asyncio.sleep(TICK)
                self.tick(clock.now())
                if not (self.pages or self._only_in_history or self._ticks < self._fetch_again[1]):
                    self.awake.clear()
        finally:
            await self.shared.stop()
            for grid in self.grids.values():
                await grid.stop()

    def figures(self) -> messages.Figures:
        """The key figures with their captions, made once for all pages."""
        if self._figured[0] != self.store.seq:
            self._figured = (self.store.seq, messages.figures_of(self.store))
        return self._figured[1]

    def join(self, page: PageReader) -> None:
        """Send this page what happens, and tick while it is open."""
        self.pages.add(page)
        self.awake.set()

    def tick(self, now: datetime) -> None:
        """Wake the pages, and draw the parts that they share."""
        self._count(0)
        wanted = {group for page in self.pages for group in page.groups}
        self.shared.tick(self, wanted, now)
        if self.pages:
            self.menu.look(now)
        self._tick_fields()
        self._ticks += 1
        written = not self.unwritten()
        if written:
            self._unwritten_lines = 0
        if self._only_in_history and written:
            self._only_in_history = False
            self._fetch_again = self.seq, self._ticks + LATECOMERS
            self.told(True)
            for page in self.pages:
                page.refetch()
        parts = min(RAREST, -(-len(self.open_pages) // WOKEN) or 1)
        for page in self.pages:
            if (page.number + self._ticks) % parts == 0:
                page.wake.set()

    def _tick_fields(self) -> None:
        """A picture of all heartbeats is kept while somebody looks at it."""
        wanted = {page.field for page in self.pages if page.field is not None}
        for by in set(self.grids) - wanted:
            del self.grids[by]
        for by in wanted:
            self.grids.setdefault(
                by, NodeGrid(self.store, self.nodes, by, self._report_failure)
            ).tick()

    def close(self) -> None:
        """The cluster is watched no longer: close its sockets."""
        for end in tuple(self.ends):
            end(f"{self.store.cluster} is watched no longer. Reload the page.")

    def hello(self, now: datetime) -> str:
        """The first frame of a reader: the current number and counts."""
        return messages.changes_message(
            seq=self.seq, now=now, changes=(), counts=messages.flatten(self.store.counts())
        )


class Publisher:
    """The hubs of all clusters."""

    def __init__(self, stores: dict[str, Store]) -> None:
        self.sockets = SocketShare()
        self._stores = ByCluster(stores)
        self._menu = ClusterMenu(self._stores)
        hubs = {name: ClusterHub(store, self._menu) for name, store in stores.items()}
        self.hubs = ByCluster(hubs)
        self.fleet = FleetHub(self.hubs, self._menu)
        for name, hub in hubs.items():
            hub.told = partial(self.fleet.notice, name)

    def add(self, store: Store) -> ClusterHub:
        """Begin with one more cluster."""
        self._stores.put(store.cluster, store)
        hub = ClusterHub(store, self._menu)
        self.hubs.put(store.cluster, hub)
        hub.told = partial(self.fleet.notice, store.cluster)
        return hub

    def remove(self, cluster: str) -> None:
        """The cluster is watched no longer."""
        hub = self.hubs[cluster]
        self._stores.drop(cluster)
        self.hubs.drop(cluster)
        hub.close()

    def fill(self, cluster: str, newest_first: Sequence[Change]) -> None:
        """Start from the newest changes in history, so that a page is not empty after a restart."""
        hub = self.hubs[cluster]
        hub.recent.extendleft((hub.seq, change) for change in newest_first)
        hub.explainable.add(newest_first[::-1])
        hub.explained.extend((hub.incident_turn, one) for one in newest_first[::-1] if one.incident)

    def publish(self, update: Update) -> None:
        """Take the updates of the trackers."""
        self.hubs[update.cluster].publish(update)
