"""Draw the parts that are the same on every page of a cluster: once for all pages, when their data
changed, in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime

import msgspec
from django.template.loader import render_to_string

from dashboard.pages.overview.summary import OverviewSource, overview
from dashboard.parts.kept.drawing_failures import Failed, log_failure
from dashboard.parts.kept.node_book import Grouping
from dashboard.parts.node_summary import group_lines, nodes_view

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

    draw: Callable[[OverviewSource, datetime], list[Region]]
    moves: bool
    every: float


def _overview(watched: OverviewSource, now: datetime) -> list[Region]:
    view = overview(watched, now)
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


def _ages(watched: OverviewSource, now: datetime) -> list[Region]:
    chart = watched.ages.of(watched.store, now)
    return [Region("ages", chart, "overview/_ages.html", {"chart": chart})]


def _nodes(watched: OverviewSource, now: datetime) -> list[Region]:
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


def _groups(watched: OverviewSource, by: Grouping) -> list[Region]:
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

    def tick(self, watched: OverviewSource, wanted: Collection[str], now: datetime) -> None:
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

    async def _draw(self, name: str, watched: OverviewSource, now: datetime, jumps: int) -> None:
        """`jumps` of the clock were before `now`."""
        known = self.drawn.get(name, {})
        as_of = watched.store.connection.as_of(now)
        try:
            found = await asyncio.to_thread(_fresh, GROUPS[name].draw, known, watched, as_of)
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
    draw: Callable[[OverviewSource, datetime], list[Region]],
    known: Mapping[str, Drawn],
    watched: OverviewSource,
    now: datetime,
) -> dict[str, tuple[object, str]]:
    """Draw the regions that differ from those known. Runs in a thread."""
    return {
        region.id: (region.stamp, str.__str__(render_to_string(region.template, region.context)))
        for region in draw(watched, now)
        if region.id not in known or known[region.id].stamp != region.stamp
    }
