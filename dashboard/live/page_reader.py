"""Build the next frame for one open page from what the page shows."""

import asyncio
from collections.abc import Collection, Container, Hashable, Iterable, Sequence
from copy import copy
from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict

from dashboard import clock
from dashboard.config import VERSION
from dashboard.feed import Flappers, Move, created_in, flapping_of
from dashboard.lists.url_parameters import BadFilter
from dashboard.live import shared_drawings
from dashboard.live.messages import Counts, Figures, Show, connection_item, read_name
from dashboard.live.shared_drawings import (
    GROUPS,
    Drawings,
    FlapCount,
    HubView,
    MenuReader,
    ShownFeed,
    looks_alike,
)
from dashboard.pages.wall import TICKER, has_tile
from dashboard.parts.lease_filter import LeaseFilter, Matcher, wants
from dashboard.parts.lease_row import numbers
from dashboard.watched_cluster import Grouping
from leases.domain.change import ChangeType
from leases.domain.figures import is_in_trouble
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.history.activity import Activity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update

# The page shows "1,000 or more": in a mass failure every page would count every Lease.
MAX_COUNTED = 1000


class Flaps:
    """Whether a Lease flaps at the moment `now`."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self.now = datetime.fromtimestamp(0, UTC)

    def __call__(self, known: Tracked) -> bool:
        return flapping_of(self._activity, known, self.now) is not None


class Elsewhere:
    """The Leases that came into trouble since a list was drawn and that it does not show;
    `may_differ`: a Lease may have joined or left the list unseen; `recount`: the list may have more
    or fewer of them than it says.
    """

    def __init__(self, page: Show, activity: Activity) -> None:
        self._flaps = Flaps(activity)
        self._list = (page.query, page.listed)
        wanted = _read(page.query)
        self._wants = None if wanted is None else wants(wanted, self._flaps)
        self._wanted = wanted or LeaseFilter()
        self._chooses = self._wanted.chooses
        self.may_differ = self.recount = False
        self._found: set[ObjectName] = set()
        # A page that goes on after a cut may say a number; only a fresh one surely says none.
        self._reported = 0 if page.listed in (None, page.drawn) else None

    @property
    def counts(self) -> bool:
        """Whether the page has a list to count for."""
        return self._wants is not None

    def is_of(self, page: Show) -> bool:
        """Whether the page still shows the list that this counts for."""
        return self._list == (page.query, page.listed)

    def count_again(
        self, moves: Sequence[Move] | None, store: Store, shown: Container[ObjectName]
    ) -> None:
        """Count what came into trouble since the list was drawn; None: nobody knows what moved."""
        if self._wants is None:
            return
        self._flaps.now = clock.now()
        self.may_differ |= moves is None or any(move.keys is None for move in moves)
        for move in moves or ():
            self._find(move.keys or (), store, shown)

    def notice(self, update: Update, store: Store, shown: Collection[ObjectName]) -> None:
        """Count what changed; on a page without rows, every Lease of its list."""
        if self._wants is None:
            return
        self._flaps.now = update.now
        created = created_in(update)
        moved = (*update.redraw, *update.removed)
        self.recount |= self._recounts(moved if self._chooses else (*created, *update.removed))
        self.may_differ |= update.listed
        if len(shown) < self._wanted.limit:
            self.may_differ |= any(self._joined(key, store, shown) for key in created)
        self._find(update.redraw, store, shown)
        self._found.difference_update(update.removed)

    def _find(
        self, moved: Iterable[ObjectName], store: Store, shown: Container[ObjectName]
    ) -> None:
        for key in moved:
            if key in shown or (len(self._found) >= MAX_COUNTED and key not in self._found):
                continue
            known = store.get(key)
            wanted = known is not None and self._wants is not None and self._wants(known)
            if wanted and known is not None and (not shown or self._bad(known)):
                self._found.add(key)
            else:
                self._found.discard(key)

    def catch_up(
        self, moves: Sequence[Move] | None, store: Store, shown: Container[ObjectName]
    ) -> None:
        """Judge what moved since the page was drawn; None: nobody knows what."""
        if self._wants is None:
            return
        self._flaps.now = clock.now()
        self.recount = any(
            move.keys is None
            or self._recounts(
                [
                    key
                    for key in move.keys
                    if self._chooses or key in move.created or store.get(key) is None
                ]
            )
            for move in moves or ()
        )
        self.may_differ |= moves is None or any(
            move.keys is None
            or any(self._joined_or_left(key, move, store, shown) for key in move.keys)
            for move in moves
        )

    def _recounts(self, moved: Iterable[ObjectName]) -> bool:
        """Whether one of these may count in the list now, or may have before: a Lease that moved
        had an unknown holder and labels.
        """
        namespaces = self._wanted.namespaces
        return any(not namespaces or key.namespace in namespaces for key in moved)

    def _joined(self, key: ObjectName, store: Store, shown: Container[ObjectName]) -> bool:
        known = store.get(key)
        return key not in shown and known is not None and bool(self._wants and self._wants(known))

    def _joined_or_left(
        self, key: ObjectName, move: Move, store: Store, shown: Container[ObjectName]
    ) -> bool:
        """Whether the list may have a Lease more or less than its drawing."""
        known = store.get(key)
        wanted = known is not None and self._wants is not None and self._wants(known)
        if key in shown or known is None or not wanted:
            return key in shown and not wanted
        return not shown or self._chooses or key in move.created or self._bad(known)

    def _bad(self, known: Tracked) -> bool:
        in_trouble = is_in_trouble(known.phase, known.kind, excused=known.excused)
        return in_trouble or self._flaps(known)

    def news(self) -> int | None:
        """Return the number of Leases if it differs from the last one returned."""
        if len(self._found) == self._reported:
            return None
        self._reported = len(self._found)
        return self._reported


def _read(query: str | None) -> LeaseFilter | None:
    if query is None:
        return None
    try:
        return LeaseFilter.read(QueryDict(query.removeprefix("?")))
    except (BadFilter, SuspiciousOperation):  # or more parameters than Django reads
        return None


MAX_DRAWN = 3  # rows in one frame, because other tasks need the loop too
HEARTBEAT = 1.0  # seconds between frames; a page that gets none for longer reports it
ANOTHER_PROCESS = -1  # drew the page: nobody knows how far its clock was off
UNKNOWN_TURN = -1  # of incidents: the page may lack any cause
_numbers = count()


def is_live(connection: Connection) -> bool:
    return connection.state is ConnectionState.LIVE and not connection.is_behind


class PageReader:
    """What one page shows and what it still lacks, without its socket.

    `wall` is the query of a wall: its reader gets what a wall of that filter draws, nothing else.
    """

    def __init__(self, hub: HubView, drawings: Drawings, *, wall: str | None = None) -> None:
        self.number = next(_numbers)
        self._hub = hub
        self._drawings = drawings
        self._sent: dict[str, dict[ObjectName, Tracked | None]] = {}
        self._unsent: dict[tuple[str, ObjectName], None] = {}  # the longest waiting first
        self._flappers: Flappers = {}
        self._flaps: dict[ObjectName, FlapCount] = {}  # what the page shows
        self._jumps = len(hub.clock_moves) - 1  # jumps of the clock that the page follows
        self._heard = False
        self._live = is_live(hub.store.connection)
        self._incident_turn = hub.incident_turn
        self._feed = ShownFeed(hub, None if wall is None else TICKER)
        self._wall = wall
        self._has_tile = None if wall is None else self._tiles_of(wall)
        self._known_move: int | None = None  # the number of the last move that the page knows of
        self._refetch = False
        self._elsewhere = Elsewhere(Show(), hub.activity)
        self._menu = MenuReader(hub.menu)
        self._regions: dict[str, int] = {}
        self.groups: frozenset[str] = frozenset()
        self.field: Grouping | None = None
        self._pictured: tuple[int, int] | None = None
        self._counts: Counts = {}
        self._figures: Figures = {}
        self._spoke_at: datetime | None = None
        self._urgent = True
        self._answers_show = False
        self.wake = asyncio.Event()

    def _tiles_of(self, query: str) -> Matcher:
        wanted = _read(query)
        if wanted is None:
            return lambda _: False  # the wall shows the mistake in its filter, and no tile
        flaps = self._flaps  # not this reader: it would hold itself
        return has_tile(wanted, lambda one: one.key in flaps)

    def show(self, wanted: Show) -> None:
        """Note what the page shows, and send all of it once as it is now."""
        self._sent = {
            part: {read_name(name): None for name in names}
            for part, names in wanted.show.items()
            if part in shared_drawings.PARTS
        }
        self._unsent = {(part, key): None for part, keys in self._sent.items() for key in keys}
        self._answers_show = True
        self._refetch |= self._feed.show(wanted)
        self._follow_jumps(wanted.jumps)
        self._follow_list(wanted)
        if wanted.drawn is not None:
            self._catch_up(wanted.drawn)
        self.groups = frozenset(GROUPS).intersection(wanted.groups)
        self._menu.wanted = wanted.clusters
        self.field = wanted.field
        self._counts, self._figures = {}, {}
        self._urgent = True
        self.wake.set()

    def _follow_list(self, wanted: Show) -> None:
        """Go on counting for a list that stayed while parts around it were drawn again."""
        if self._elsewhere.is_of(wanted):
            return
        self._elsewhere = Elsewhere(wanted, self._hub.activity)
        if wanted.listed is not None:
            moves = self._hub.moves.since(wanted.listed, None)
            self._elsewhere.count_again(moves, self._hub.store, self._sent.get("row", {}))

    def _catch_up(self, drawn: str) -> None:
        """Tell the page what moved since its drawing."""
        moves = self._hub.moves.since(drawn, self._known_move)
        self._known_move = self._hub.moves.number
        if moves is None:
            self._refetch = True
            self._incident_turn = UNKNOWN_TURN
        elif (first := next((move for move in moves if move.incidents), None)) is not None:
            self._incident_turn = min(self._incident_turn, first.turn)
        self._elsewhere.catch_up(moves, self._hub.store, self._sent.get("row", {}))

    def _follow_jumps(self, jumps: int | None) -> None:
        """Move the moments of a page that was drawn, or lost its socket, before a jump.

        Only the first message counts: a later one may cross a frame that moves the page.
        """
        first, self._heard = not self._heard, True
        if not first or jumps is None or jumps == self._jumps:
            return
        self._refetch = True
        self._jumps = jumps if 0 <= jumps < len(self._hub.clock_moves) else ANOTHER_PROCESS

    def refetch(self) -> None:
        """Let the page fetch everything again at once."""
        self._refetch = self._urgent = True
        self.wake.set()

    def notice(self, update: Update) -> None:
        """Note what looks different, and wake the page at once if it shows it.

        The rest, counts among it, comes with the publisher's next tick.
        """
        self._elsewhere.notice(update, self._hub.store, self._sent.get("row", {}))
        if update.connection is not None:
            was_live, self._live = self._live, is_live(update.connection)
            self._refetch |= self._live and not was_live  # parts say why nothing is known
        if update.listed or update.missed:
            self._refetch = True
        if self._shows(update):
            self._urgent = True
            self.wake.set()

    def _shows(self, update: Update) -> bool:
        if update.listed or update.connection or (update.changes and self._feed.number is not None):
            return True
        moved = (*update.redraw, *update.removed)
        return any(key in shown for shown in self._sent.values() for key in moved)

    def alike(self) -> Hashable | None:
        """Equal for two readers that will have the same frames, right after they had one; None
        while the page lacks something, or has a list to count for.
        """
        whole = self._heard and not (self._unsent or self._answers_show or self._refetch)
        if not whole or self._elsewhere.counts or self._jumps != len(self._hub.clock_moves) - 1:
            return None
        parts = frozenset((part, frozenset(shown)) for part, shown in self._sent.items())
        aside = (self._feed.form, self.groups, self.field, self._menu.wanted)
        wall = None if self._wall is None else (_read(self._wall),)
        return wall, parts, aside, self._known_move is None

    def fork(self) -> "PageReader":
        """Go on with the same for another page."""
        other = copy(self)
        other.detach()
        return other

    def detach(self) -> None:
        """Share nothing with the reader that this one is a copy of."""
        self.number, self.wake = next(_numbers), asyncio.Event()
        self._sent = {part: dict(shown) for part, shown in self._sent.items()}
        self._unsent, self._regions = dict(self._unsent), dict(self._regions)
        self._feed, self._menu = copy(self._feed), copy(self._menu)
        self._elsewhere, self._flaps = copy(self._elsewhere), dict(self._flaps)
        if self._wall is not None:
            self._has_tile = self._tiles_of(self._wall)
        self.wake.set()

    def start_over(self) -> None:
        """The page may lack any of the last frames: send all of it, and let it fetch the rest."""
        for part, shown in self._sent.items():
            shown.update(dict.fromkeys(shown))
            self._unsent |= {(part, key): None for key in shown}
        self._counts, self._figures, self._regions = {}, {}, {}
        self._pictured = None
        self._jumps = ANOTHER_PROCESS
        self.refetch()

    def frame(self, now: datetime) -> dict[str, Any] | None:
        """What the page lacks, or None when it lacks nothing and has heard from us lately.

        None also until the page said by which clock it was drawn.
        """
        if not self._heard:
            return None
        frame = self._difference(now)
        silent = None if self._spoke_at is None else (now - self._spoke_at).total_seconds()
        quiet = silent is not None and 0 <= silent < HEARTBEAT
        if not frame and quiet and not self._urgent:
            return None
        moves = self._hub.clock_moves
        if self._jumps != len(moves) - 1:
            frame["moved"] = 0.0 if self._jumps < 0 else moves[-1] - moves[self._jumps]
            self._jumps = frame["jumps"] = len(moves) - 1
        self._urgent = bool(self._unsent)
        self._spoke_at = now
        if self._answers_show and not self._unsent:
            frame["shown"], frame["version"] = True, VERSION
            self._answers_show = False
        frame["now"] = now.timestamp()
        frame["seq"] = self._hub.seq
        frame["drawn"] = self._hub.moves.stamp
        if self._known_move is not None:
            self._known_move = self._hub.moves.number
        frame["connection"] = connection_item(
            self._hub.store.connection,
            now=now,
            events_per_second=self._hub.events_per_second,
            problem=self._hub.problem(),
        )
        return frame

    def picture(self) -> tuple[list[tuple[str, int]] | None, bytes] | None:
        """What the page's picture of all heartbeats lacks: the groups where they are others, and
        the phases. None when it lacks nothing.
        """
        field = self._hub.grids.get(self.field) if self.field else None
        if field is None or field.layout is None:
            return None
        layout = field.layout
        if self._pictured is None or self._pictured[0] != layout.generation:
            self._pictured = (layout.generation, field.position)
            return layout.groups, field.whole()
        news = field.since(self._pictured[1])
        self._pictured = (layout.generation, field.position)
        return None if news is None else (None, news)

    def _difference(self, now: datetime) -> dict[str, Any]:
        html: dict[str, dict[str, str]] = {}
        renewed: dict[str, list[float | None]] = {}
        gone: list[str] = []
        later: dict[tuple[str, ObjectName], None] = {}
        drawn = 0
        store = self._hub.store
        as_of = store.connection.as_of(now)
        self._note_flapping(as_of)
        for part, shown in self._sent.items():
            for key in tuple(self._in_turn(part, shown)):
                before, after = shown[key], store.get(key)
                if after is before and (part, key) not in self._unsent:
                    continue
                if after is not None and self._has_tile and not self._has_tile(after):
                    gone.append(str(key))
                    del shown[key]  # once it has a tile again, the wall draws and names it
                    continue
                if after is None:
                    gone.append(str(key))
                elif before is not None and looks_alike(before, after):
                    renewed[str(key)] = numbers(after)
                elif drawn < MAX_DRAWN:
                    drawn += 1
                    flaps = self._flaps.get(key)
                    html.setdefault(part, {})[str(key)] = self._drawings.draw(
                        store.cluster, part, after, as_of, self._hub.activity, flaps
                    )
                else:
                    later[part, key] = None
                    continue
                shown[key] = after
        self._unsent = later
        if later:
            self.wake.set()
        frame: dict[str, Any] = {"html": html, "renewed": renewed, "gone": gone}
        frame["ends"] = self._ends_of(gone) if gone else {}
        frame |= self._asides(now)
        return {name: value for name, value in frame.items() if value or name == "elsewhere"}

    def _ends_of(self, gone: Collection[str]) -> dict[str, float]:
        """When each of these was deleted (epoch s), if that is among the newest changes."""
        deletions = (one for _, one in self._hub.recent if one.change is ChangeType.DELETED)
        ends = {f"{one.namespace}/{one.name}": one.at.timestamp() for one in deletions}
        return {key: ends[key] for key in gone if key in ends}

    def _note_flapping(self, now: datetime) -> None:
        """Draw the Leases again whose count differs: time alone changes it too."""
        flappers = self._hub.flappers.at(now)
        if flappers is self._flappers:
            return
        self._flappers = flappers
        flaps = {key: (how.changes, how.counted_since) for key, how in flappers.items()}
        for key in flaps.keys() | self._flaps.keys():
            if flaps.get(key) != self._flaps.get(key):
                for part, shown in self._sent.items():
                    if key in shown:
                        shown[key] = None
                        self._unsent[part, key] = None
        self._flaps.clear()
        self._flaps.update(flaps)

    def _in_turn(self, part: str, shown: Iterable[ObjectName]) -> Iterable[ObjectName]:
        """Draw the longest waiting first, however often others change."""
        turns = {place: number for number, place in enumerate(self._unsent)}
        if not turns:
            return shown
        return sorted(shown, key=lambda key: turns.get((part, key), len(turns)))

    def _asides(self, now: datetime) -> dict[str, Any]:
        """Add counts, feed and hints where they are new."""
        aside, lacks_more = self._feed.news(now)
        self._refetch |= lacks_more
        aside |= {"regions": self._new_regions(), "clusters": self._menu.news()}
        news = self._elsewhere.news()
        if news is not None:
            aside["elsewhere"] = news
        if self._elsewhere.may_differ:
            aside["list"], self._elsewhere.may_differ = True, False
        if self._elsewhere.recount:
            aside["recount"], self._elsewhere.recount = True, False
        counts = self._hub.counts(now)
        if counts is not self._counts:
            aside["counts"] = {k: n for k, n in counts.items() if self._counts.get(k) != n}
            self._counts = counts
        if "overview" in self.groups:
            figures = self._hub.figures()
            aside["figures"] = {k: f for k, f in figures.items() if self._figures.get(k) != f}
            self._figures = figures
        if self._incident_turn != self._hub.incident_turn:
            aside["incidents"] = True
            aside["explained"] = self._feed.explained(self._incident_turn, now)
            self._incident_turn = self._hub.incident_turn
        if self._refetch:
            aside["refetch"] = True
            self._refetch = False
        return aside

    def _new_regions(self) -> dict[str, str]:
        fresh: dict[str, str] = {}
        for group in self.groups:
            for key, drawn in self._hub.shared.drawn.get(group, {}).items():
                if self._regions.get(key) != drawn.number:
                    self._regions[key] = drawn.number
                    fresh[key] = drawn.html
        return fresh
