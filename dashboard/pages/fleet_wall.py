"""The wall of several clusters: is anything wrong in any of them? A strip for each, worst first."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, fleet_wall_required
from dashboard.board import running_board
from dashboard.feed import ClusterFeed
from dashboard.parts import fleet_row
from dashboard.parts.across import partly_live, silent_states
from dashboard.parts.formatting import counted, when
from dashboard.parts.key_figures import unexcused
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState

LYING, UPRIGHT = 8, 13  # strips on a screen; `static/css/wall_fleet.css` has the same
STRIPS = tuple(f"fleet-{place}" for place in range(1, UPRIGHT + 1))  # their ids
WALL = "wall"  # in the address of its socket, which a person may open, too
COUNTED = (Phase.EXPIRED, Phase.VACANT, Phase.LATE, Phase.HELD)


class WallStrip(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster on the wall. Equal strips have one drawing, so they have no age."""

    name: str
    css: str
    live: bool
    empty: bool  # it has no Leases, so nothing is vacant
    icon: str
    sentence: str
    note: str
    watch: str  # since when its watch is as it is
    watch_css: str
    numbers: tuple[tuple[str, int], ...]  # what flaps, and Leases by phase, where they are known
    only_free: bool  # what is vacant there is no trouble, such as a lock


class WallSum(msgspec.Struct, frozen=True):
    """The Leases of a phase in all clusters. `number` is what is known now; None: nothing is."""

    phase: str
    number: int | None
    old: int  # those of the clusters that are not live, as last known
    free: bool  # none of the number is trouble


class WallRow(msgspec.Struct, frozen=True):
    """`order` is its place among the others; the first is the worst."""

    order: tuple[Any, ...]
    strip: WallStrip
    trouble: fleet_row.Trouble
    leases: int


def wall_row(row: fleet_row.FleetRow) -> WallRow:
    cell, watch = fleet_row.cell_view(row), row.connection
    left = unexcused(row.counts, row.excused)
    # A strip has three lines: beside an incident, why its cluster is silent would be cut off.
    brief = not row.live and row.trouble is fleet_row.Trouble.INCIDENT
    words, shapes = fleet_row.WATCH_WORDS, fleet_row.SHAPES
    strip = WallStrip(
        name=row.cluster,
        css=cell.css,
        live=row.live,
        empty=cell.css == Phase.VACANT and not fleet_row.total_of(row.counts),
        icon=cell.icon,
        sentence=cell.sentence,
        note=fleet_row.known_at(row) if brief else cell.note,
        watch=f"{words[watch.state]} {when(watch.since, row.now)}",
        watch_css=shapes[watch.state],
        numbers=_numbers(row, left) if row.known else (),
        only_free=Phase.VACANT not in row.troubled,
    )
    return WallRow(fleet_row.worst_first(row), strip, row.trouble, fleet_row.total_of(row.counts))


def _numbers(row: fleet_row.FleetRow, left: Mapping[Phase, int]) -> tuple[tuple[str, int], ...]:
    flapping = row.troubled.get(fleet_row.FLAPPING, 0)
    return (fleet_row.FLAPPING, flapping), *((phase.value, left[phase]) for phase in COUNTED)


def wall_parts(rows: Iterable[WallRow]) -> dict[str, str]:
    """The HTML of the wall's parts, by their ids: the page and the live publisher draw the same."""
    worst = sorted(rows, key=lambda row: row.order)
    drawn = [_drawn(row.strip) for row in worst[:UPRIGHT]]
    strips = dict.fromkeys(STRIPS, "") | dict(zip(STRIPS, drawn, strict=False))
    sums = {"counts": _sums(worst), "clusters": _clusters(worst)}
    rest = [("lying", _rest(worst, LYING)), ("upright", _rest(worst, UPRIGHT))]
    parts: dict[str, tuple[str, dict[str, Any]]] = {
        "fleet-counts": ("wall/_fleet_counts.html", sums),
        "fleet-rest": ("wall/_fleet_rest.html", {"rest": rest}),
        "fleet-sums": ("wall/_fleet_sums.html", sums),
    }
    return strips | {name: _render(*what) for name, what in parts.items()}


@lru_cache(maxsize=4 * UPRIGHT)  # of walls in several time zones
def _drawn(strip: WallStrip) -> str:
    return _render("wall/_fleet_strip.html", {"strip": strip})


def _render(template: str, context: Mapping[str, Any]) -> str:
    return str.__str__(render_to_string(template, dict(context)))  # the encoder needs an exact str


def _sums(rows: Sequence[WallRow]) -> list[WallSum]:
    live = [row.strip for row in rows if row.strip.live]
    old = [row.strip for row in rows if not row.strip.live]
    only_free = all(strip.only_free for strip in live)
    return [
        WallSum(
            phase.value,
            _sum_of(phase, live) if live or not old else None,
            _sum_of(phase, old),
            free=phase is Phase.VACANT and only_free,
        )
        for phase in COUNTED
    ]


def _sum_of(phase: Phase, strips: Iterable[WallStrip]) -> int:
    return sum(dict(strip.numbers).get(phase.value, 0) for strip in strips)


def _rest(rows: Sequence[WallRow], room: int) -> str:
    """What is said of those without a strip, for which the last one makes room."""
    if len(rows) <= room:
        return ""
    rest = rows[room - 1 :]
    bad = sum(row.trouble is not fleet_row.Trouble.NONE for row in rest)
    return f"{len(rest):,} more, {f'{bad:,} in trouble' if bad else 'all quiet'}"


def _clusters(rows: Sequence[WallRow]) -> str:
    """Of how many clusters the wall speaks, and how many of them and of their Leases are known
    from before alone.
    """
    silent = [row for row in rows if not row.strip.live]
    quiet = sum(row.trouble is fleet_row.Trouble.NONE for row in rows)
    said = [counted(len(rows), "cluster"), f"{quiet:,} quiet" if quiet else "none quiet"]
    leases = counted(sum(row.leases for row in rows if row.strip.live), "Lease")
    if silent:
        said.append(f"{len(silent):,} not live")
        leases += f", {sum(row.leases for row in silent):,} old"
    return "; ".join([", ".join(said), leases])


def feeds_of(clusters: Collection[str]) -> list[ClusterFeed]:
    """Those of these clusters that are watched; without names, of all."""
    feeds = running_board().feeds
    return [feed for name, feed in feeds.items() if not clusters or name in clusters]


@require_safe
@fleet_wall_required
def fleet_wall(request: ClusterRequest) -> HttpResponse:
    """Sums of all clusters, and those that are worst."""
    now = clock.now()
    feeds = feeds_of(request.link.clusters if request.link else ())
    parts = wall_parts(wall_row(fleet_row.latest_row(feed, now)) for feed in feeds)
    query = request.GET.copy()
    query[WALL] = "1"
    context = {
        "strips": [(name, parts[name]) for name in STRIPS],
        **{name: parts[f"fleet-{name}"] for name in ("counts", "rest", "sums")},
        "watched": len(feeds),
        "partly_live": partly_live(
            silent_states((feed.store for feed in feeds), now),
            [feed.store.cluster for feed in feeds],
        ),
        "live_url": f"{fleet_row.FLEET_LIVE_URL}?{query.urlencode()}",
        "connection": Connection(state=ConnectionState.LIVE, since=now),
        "as_of": now,
    }
    return render(request, "wall/fleet.html", context)
