"""What is the same on every open page, drawn once for all: rows, heads, menus, parts, changes.

The HTML is the same for everybody; what a role may do shows through `<body data-may-edit>`.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec
from django.template.loader import render_to_string
from msgspec.structs import replace

from dashboard.feed import ClusterFeed, Failed, flapping_of, log_failure
from dashboard.live.messages import Counts, Figures, Show
from dashboard.pages.nodes import NodeGrid
from dashboard.pages.overview import ages_of, summary
from dashboard.parts.change_sentence import ChangeLine, change_line
from dashboard.parts.cluster_menu import menu_state
from dashboard.parts.incident_line import ChangeCause, change_cause
from dashboard.parts.key_figures import unwatched_by_hour
from dashboard.parts.lease_head import lease_view
from dashboard.parts.lease_row import row_view, wall_tile
from dashboard.parts.node_summary import group_lines, nodes_view
from dashboard.templatetags.board import change_item, change_row, lease_row
from dashboard.watched_cluster import Grouping
from leases.domain.change import Change, identity
from leases.domain.lease import ObjectName
from leases.history.activity import Activity
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from leases.worker_threads import WorkerThreads

Draw = Callable[[str, Tracked, datetime, Activity], str]
FlapCount = tuple[int, datetime | None]


def render_row(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """A row of the Leases table."""
    hours, unwatched = activity.of(tracked.key, now), unwatched_by_hour(activity.watched, now)
    how = flapping_of(activity, tracked, now)
    row = row_view(
        cluster, tracked, now,
        hours=hours, unwatched=unwatched, flapping=how, watched=activity.watched,
    )  # fmt: skip
    return str.__str__(lease_row(row))


def render_tile(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """A tile of the wall."""
    how = flapping_of(activity, tracked, now)
    tile = wall_tile(cluster, tracked, now, flapping=how, watched=activity.watched)
    return _plain("wall/_tile.html", {"tile": tile})


def render_lease(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """The head of a Lease's page."""
    how = flapping_of(activity, tracked, now)
    view = lease_view(cluster, tracked, now, flapping=how, watched=activity.watched)
    return _plain("leases/_summary.html", {"lease": view})


def render_now(cluster: str, tracked: Tracked, now: datetime, activity: Activity) -> str:
    """The present Lease beside a form."""
    row = row_view(cluster, tracked, now, watched=activity.watched)
    duration = tracked.lasting.lease.spec.lease_duration_seconds
    return _plain("leases/_now.html", {"row": row, "duration": duration, "as_of": now})


def render_change(change: Change, form: str, now: datetime) -> str:
    """A change in a form of CHANGES, drawn once for all pages."""
    return _draw_change(change, form, now.date(), change_cause(change, now))


@lru_cache(maxsize=512)
def _draw_change(change: Change, form: str, today: date, cause: ChangeCause | None) -> str:
    # The text has no ages: of the time only the date counts, and whether the cause is still sought.
    line = change_line(
        change, datetime.combine(today, datetime.min.time(), UTC) + timedelta(hours=12)
    )
    return str.__str__(CHANGES[form](replace(line, cause=cause)))


def _plain(template: str, context: dict[str, object]) -> str:
    """Draw as an exact str: the encoder of frames refuses subclasses."""
    return str.__str__(render_to_string(template, context))


PARTS: dict[str, Draw] = {
    "row": render_row,
    "tile": render_tile,
    "lease": render_lease,
    "now": render_now,
}
CHANGES: dict[str, Callable[[ChangeLine], str]] = {"line": change_item, "row": change_row}


_DrawnRows = dict[tuple[str, str, ObjectName], tuple[Tracked, object, str]]


class Drawings:
    """Rows drawn once for all pages, kept per part and Lease until the Lease changes. A row that no
    page asked for in `keep_seconds` goes within as long again, when another row is asked for.
    """

    LIMIT = 5000

    def __init__(self, keep_seconds: float = 60.0) -> None:
        self._keep_seconds = keep_seconds
        self._since = 0.0
        self._kept: _DrawnRows = {}
        self._before: _DrawnRows = {}

    def draw(
        self,
        cluster: str,
        part: str,
        tracked: Tracked,
        now: datetime,
        activity: Activity,
        flaps: FlapCount | None = None,
    ) -> str:
        """`flaps` counts the changes that make it flap, and says since when."""
        place = (cluster, part, tracked.key)
        # The bars of a day move every hour; a time that nobody watched is in no length of a term.
        aside = now.hour, flaps, activity.watched.pauses
        self._forget()
        kept = self._kept.get(place) or self._before.get(place)
        if kept is None or kept[0] is not tracked or kept[1] != aside:
            kept = (tracked, aside, PARTS[part](cluster, tracked, now, activity))
        self._kept[place] = kept
        return kept[2]

    def _forget(self) -> None:
        now = time.monotonic()
        if now - self._since >= self._keep_seconds or len(self._kept) >= self.LIMIT:
            self._since, self._before, self._kept = now, self._kept, {}


def looks_alike(one: Tracked, other: Tracked) -> bool:
    """Whether two states differ in freshness alone."""
    if (one.renew_time is None) is not (other.renew_time is None):  # only one of them has it
        return False
    if one.lasting is other.lasting:
        return True
    a, b = one.lasting.lease, other.lasting.lease
    return (
        one.phase is other.phase
        and one.lasting.not_understood is other.lasting.not_understood
        and one.kind is other.kind
        and one.held_since == other.held_since
        and one.lapses == other.lapses
        and one.abandoned is other.abandoned
        and one.lasting.may_be_vacant == other.lasting.may_be_vacant
        and a.metadata.uid == b.metadata.uid
        and a.metadata.labels == b.metadata.labels
        and a.metadata.annotations == b.metadata.annotations
        and a.spec.holder_identity == b.spec.holder_identity
        and a.spec.lease_duration_seconds == b.spec.lease_duration_seconds
        and a.spec.acquire_time == b.spec.acquire_time
        and a.spec.lease_transitions == b.spec.lease_transitions
        and a.spec.strategy == b.spec.strategy
        and a.spec.preferred_holder == b.spec.preferred_holder
    )


_threads = WorkerThreads("regions", 4)
SPACING = 2.0  # seconds between two drawings of one group


class Region(msgspec.Struct, frozen=True):
    """One part, drawn again when `stamp` differs: its data without the ages."""

    id: str
    stamp: object
    template: str
    context: dict[str, object]


class RegionGroup(msgspec.Struct, frozen=True):
    """Regions drawn together: every `every` seconds, and with `moves` also when a phase or holder
    changed.
    """

    draw: Callable[[ClusterFeed, datetime], list[Region]]
    moves: bool
    every: float


def _overview(watched: ClusterFeed, now: datetime) -> list[Region]:
    view = summary(watched, now)
    context: dict[str, object] = {"view": view}
    connection = (view.connection.state, view.connection.detail)
    said = filter(None, (*view.attention, view.abandoned))
    lines = [(x.label, x.url, x.word, x.why, x.until, x.since, x.moment) for x in said]
    rows = [(row.key, row.phase, row.flap, row.excuse) for row in view.elections]
    attention = (lines, view.more, view.calm)
    elections = (rows, view.election_total, connection)
    return [
        Region("kpis", view.kpis, "overview/_kpis.html", context),
        Region("attention", attention, "overview/_attention.html", context),
        Region("elections", elections, "overview/_elections.html", context),
        Region("hours", view.hours, "overview/_hours.html", context),
    ]


def _ages(watched: ClusterFeed, now: datetime) -> list[Region]:
    chart = ages_of(watched, now)
    return [Region("ages", chart, "overview/_ages.html", {"chart": chart})]


def _nodes(watched: ClusterFeed, now: datetime) -> list[Region]:
    view = nodes_view(watched, now)
    context: dict[str, object] = {"view": view}
    counts = (view.known, view.counts, view.counted_in, view.joined, view.left)
    worst = ([(beat.full, beat.phase) for beat in view.worst], view.bad, view.calm)
    join = msgspec.structs.replace(
        view.join,
        orphans=tuple(beat.full for beat in view.join.orphans),
        disagreeing=tuple(beat.full for beat in view.join.disagreeing),
    )
    finding = (view.known, view.finding) if not view.total else None
    return [
        Region("no-heartbeats", finding, "nodes/_no_heartbeats.html", context),
        Region("node-counts", counts, "nodes/_counts.html", context),
        Region("worst", worst, "nodes/_worst.html", context),
        Region("join", join, "nodes/_join.html", context),
    ]


def _groups(watched: ClusterFeed, by: Grouping) -> list[Region]:
    lines = group_lines(watched, by)
    return [Region("groups", (by, lines), "nodes/_groups.html", {"lines": lines, "by": by})]


GROUPS: Mapping[str, RegionGroup] = {
    "nodes": RegionGroup(_nodes, moves=True, every=10.0),
    "zones": RegionGroup(lambda watched, _: _groups(watched, "zone"), moves=True, every=30.0),
    "pools": RegionGroup(lambda watched, _: _groups(watched, "pool"), moves=True, every=30.0),
    "overview": RegionGroup(_overview, moves=True, every=10.0),
    "ages": RegionGroup(_ages, moves=False, every=5.0),
}


class Drawn(msgspec.Struct, frozen=True):
    """A region as last drawn; `number` grows with every drawing of the process."""

    number: int
    stamp: object
    html: str


class SharedRegions:
    """The regions of one cluster that some open page shows."""

    def __init__(self, failed: Failed = log_failure) -> None:
        self._failed = failed
        self.drawn: dict[str, dict[str, Drawn]] = {}
        self._drawn_at: dict[str, float] = {}
        self._moved: set[str] = set()
        self._drawing: dict[str, asyncio.Task[None]] = {}
        self._jumps = 0
        self.drawings = 0
        self.spacing = SPACING

    def moved(self) -> None:
        """Note that a phase, a holder or the connection changed."""
        self._moved.update(name for name, group in GROUPS.items() if group.moves)

    def clock_jumped(self) -> None:
        """Forget all drawings, and those that run: they have moments by the old clock."""
        self._jumps += 1
        self.drawn.clear()
        self._drawn_at.clear()

    def tick(self, watched: ClusterFeed, wanted: Collection[str], now: datetime) -> None:
        """Start to draw the `wanted` groups that are due, and drop the groups not wanted."""
        for name in set(self.drawn) - set(wanted):
            del self.drawn[name], self._drawn_at[name]
        for name in wanted:
            age = time.monotonic() - self._drawn_at.get(name, float("-inf"))
            due = age >= (self.spacing if name in self._moved else GROUPS[name].every)
            if due and name not in self._drawing:
                self._moved.discard(name)
                self._drawing[name] = asyncio.create_task(
                    self._draw(name, watched, now, self._jumps)
                )

    async def stop(self) -> None:
        """Cancel the drawings that run."""
        tasks = tuple(self._drawing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _draw(self, name: str, watched: ClusterFeed, now: datetime, jumps: int) -> None:
        """`jumps` of the clock were before `now`."""
        known = self.drawn.get(name, {})
        as_of = watched.store.connection.as_of(now)
        try:
            found = await _threads.run(_fresh, GROUPS[name].draw, known, watched, as_of)
            self.drawings += 1
            fresh = {key: Drawn(self.drawings, stamp, html) for key, (stamp, html) in found.items()}
            if jumps == self._jumps:
                self.drawn[name] = known | fresh
        except Exception as error:
            self._failed("regions", error)
        finally:
            if jumps == self._jumps:
                self._drawn_at[name] = time.monotonic()
            del self._drawing[name]


def _fresh(
    draw: Callable[[ClusterFeed, datetime], list[Region]],
    known: Mapping[str, Drawn],
    watched: ClusterFeed,
    now: datetime,
) -> dict[str, tuple[object, str]]:
    """Draw the regions that differ from those known. Runs in a thread."""
    return {
        region.id: (region.stamp, str.__str__(render_to_string(region.template, region.context)))
        for region in draw(watched, now)
        if region.id not in known or known[region.id].stamp != region.stamp
    }


LOOKS_PER_SECOND = 1000  # at one cluster each
LOOKS_AT_ONCE = 100  # at least


class InTurn:
    """The names of clusters in turn, each once a second while they are not too many for that."""

    def __init__(self) -> None:
        self._first = 0  # place of the next one
        self._at = 0.0  # of the last look, by the monotonic clock

    def some(self, clusters: Iterable[str]) -> Sequence[str]:
        """Those to look at now, the more, the longer the last look is ago."""
        names, now = tuple(clusters), time.monotonic()
        number = max(LOOKS_AT_ONCE, int((now - self._at) * LOOKS_PER_SECOND))
        self._at = now
        if number >= len(names):
            return names
        first = self._first % len(names)
        self._first = first + number
        return (*names[first : first + number], *names[: max(0, first + number - len(names))])


Html = Mapping[str, str]  # by name of the cluster


class ClusterMenu:
    """The states as last drawn; `drawn` is another mapping when one of them differs."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores
        self._known: Html = {}  # as the menu of a page has them
        self._in_turn = InTurn()
        self.drawn: Html = {}

    def look(self, now: datetime) -> None:
        """Draw what changed since the last look, of many clusters in turn."""
        known, states = self._known, {}
        for name in self._in_turn.some(self._stores):
            state = menu_state(self._stores[name], now)
            if known.get(name) is not state:
                states[name] = state
        if states:
            self._known = {**known, **states}
            # Exact strings: the encoder of frames refuses subclasses.
            self.drawn = {**self.drawn, **{name: str.__str__(one) for name, one in states.items()}}


class MenuReader:
    """The menu of one page: what of it the page was not sent yet."""

    def __init__(self, menu: ClusterMenu) -> None:
        self._menu = menu
        self._sent: Html = {}
        self.wanted = False

    def news(self) -> Html:
        """The states that differ from those sent."""
        drawn, sent = self._menu.drawn, self._sent
        if not self.wanted or drawn is sent:
            return {}
        self._sent = drawn
        return {name: html for name, html in drawn.items() if sent.get(name) != html}


class HubView(ClusterFeed):
    """The feed of a cluster with what the reader of one page needs: `dashboard.live.publisher`."""

    shared: SharedRegions
    menu: ClusterMenu
    grids: dict[Grouping, NodeGrid]

    def counts(self, now: datetime) -> Counts:
        raise NotImplementedError

    def figures(self) -> Figures:
        raise NotImplementedError

    def is_own(self, feed: int) -> bool:
        raise NotImplementedError

    def is_outdated(self, feed: int) -> bool:
        raise NotImplementedError


class ShownFeed:
    """`number` is that of the last change that the page has; None: it shows none. `most` limits the
    lines: a wall draws its newest alone.
    """

    def __init__(self, hub: HubView, most: int | None = None) -> None:
        self._hub = hub
        self._most = most
        self._form = "line"
        self.number: int | None = None

    @property
    def form(self) -> str | None:
        """How the page shows changes, if it does."""
        return None if self.number is None else self._form

    def show(self, wanted: Show) -> bool:
        """Go on from the page's number. Returns whether the page must fetch everything instead."""
        before, self.number, self._form = self.number, wanted.feed, wanted.feed_as
        if self.number is None:
            return False
        if wanted.drawn is not None and not self._hub.is_own(self.number):
            # Another process counted: go by the moment. The page knows lines by their identity,
            # but it cannot tell counted changes apart.
            self.number = self._hub.moves.seq_at(wanted.drawn, self._hub.seq)
            if self._form == "number" and before is not None:
                self.number = max(self.number, before)
            return False
        if self._hub.is_outdated(self.number):
            self.number = self._hub.seq
            return True
        return False

    def news(self, now: datetime) -> tuple[dict[str, Any], bool]:
        """What a frame says of the feed, and whether the page may lack more than that."""
        if self.number is None:
            return {}, False
        fresh = [(seq, change) for seq, change in self._hub.recent if seq > self.number]
        lacks_more = len(fresh) == self._hub.recent.maxlen
        self.number = self._hub.seq
        if self._form == "number":
            return {"numbers": [seq for seq, _ in fresh]}, lacks_more
        if self._most is not None:
            fresh = fresh[-self._most :]
        lines = [render_change(change, self._form, now) for _, change in fresh]
        return {"feed": lines}, lacks_more

    def explained(self, turn: int, now: datetime) -> list[str]:
        """The changes again whose cause became known after that turn of incidents."""
        if self.number is None or self._form not in CHANGES:
            return []
        fresh = [change for at, change in self._hub.explained if at > turn]
        if self._most is not None:
            newest = {identity(change) for _, change in tuple(self._hub.recent)[-self._most :]}
            fresh = [change for change in fresh if identity(change) in newest]
        return [render_change(change, self._form, now) for change in fresh]
