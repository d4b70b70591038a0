"""The fleet: is anything wrong in any cluster? One strip for each, the worst first."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import groupby
from threading import Lock
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_view, drawing
from dashboard.board import running_board
from dashboard.charts.bars import Sparkline, sparkline, unwatched_hours
from dashboard.feed import PROCESS, ClusterFeed
from dashboard.lists.controls import ListLinks
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import (
    LARGEST_PAGE,
    LIMIT,
    PAGE,
    BadFilter,
    Parameter,
    for_input,
    one_of,
    quoted,
    typed,
)
from dashboard.parts.across import OfLabels, partly_live, silent_states, values_of_labels
from dashboard.parts.fleet_row import (
    FLEET_LIVE_URL,
    SHAPES,
    WATCH_WORDS,
    CellView,
    FleetRow,
    Trouble,
    cell_view,
    fleet_row,
    latest_row,
    total_of,
    worst_first,
)  # fmt: skip
from dashboard.parts.formatting import counted, thousands, when
from dashboard.parts.key_figures import Kpi, by_phase, counted_kpis, lately_kpis, unread
from dashboard.parts.names import cluster_path
from dashboard.parts.page_links import all_clusters_url
from dashboard.parts.saved_view import page_url, problem_of, start_of
from leases.domain.phase import Phase
from leases.domain.watched_times import Connection, ConnectionState
from leases.wire.microtime import format_microtime, microtime_or_none

FEW = 12  # so many clusters are all drawn as strips; of more, those in no trouble are cells


class StripFigure(msgspec.Struct, frozen=True):
    """A key figure as a strip shows it: a number over its label."""

    text: str
    label: str
    url: str
    title: str = ""
    css: str = ""


class StripView(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster with its figures."""

    cell: CellView
    shape: str  # of the connection
    connection: str
    since: str
    version: str  # of the API server
    labels: str
    figures: tuple[StripFigure, ...]
    changes: StripFigure
    spark: Sparkline


def strip_view(row: FleetRow) -> StripView:
    name, connection = row.cluster, row.connection
    phases = counted_kpis(name, row.counts, row.excused)
    changes, unheld = map(_figure, lately_kpis(name, row.day))
    unheld = StripFigure(unheld.text, f"{unheld.label}; {unheld.title}", unheld.url, css="long")
    number, url = len(row.going_on), f"{cluster_path('incidents', name)}?going_on=true"
    found = thousands(number if row.known or number else None)
    incidents = StripFigure(found, "Incidents", url, "", "bad is-expired" if number else "")
    return StripView(
        cell=cell_view(row),
        shape=SHAPES[connection.state],
        connection=WATCH_WORDS[connection.state],
        since=when(connection.since, row.now),
        version=row.feed.server_version,
        labels=", ".join(f"{key}={value}" for key, value in row.feed.labels.items()),
        figures=(
            incidents,
            *(_figure(kpi if row.known else unread(kpi)) for kpi in phases),
            unheld,
        ),
        changes=changes,
        spark=_spark(row),
    )


_sparks: WeakKeyDictionary[ClusterFeed, tuple[Hashable, Sparkline]] = WeakKeyDictionary()


def _spark(row: FleetRow) -> Sparkline:
    """The last one that was drawn, while it shows the same."""
    numbers, blind = tuple(row.numbers), tuple(row.day.watched.spans)
    shows = numbers, blind, row.as_of.replace(second=0, microsecond=0)
    known = _sparks.get(row.feed)
    if known is None or known[0] != shows:
        drawn = sparkline(numbers, unwatched_hours(blind, shows[-1], hours=len(numbers)))
        known = _sparks[row.feed] = shows, drawn
    return known[1]


def _figure(kpi: Kpi) -> StripFigure:
    text = " ".join(f"{number} {unit}".strip() for number, unit in kpi.value)
    css = f"bad is-{kpi.phase}" if kpi.bad else ""
    return StripFigure(text, kpi.label, kpi.url, kpi.detail, css)


def row_item(row: FleetRow) -> dict[str, Any]:
    """A cluster as JSON says it."""
    blind = sum(span.seconds for span in row.day.watched.blind)
    phases = {phase.value: by_phase(row.counts, phase) for phase in Phase}
    troubled = {word.replace(" ", "_"): n for word, n in row.troubled.items()}
    return {
        "cluster": row.cluster,
        "labels": dict(row.feed.labels),
        "trouble": row.trouble.value,
        "connection": row.connection.state.value,
        "version": row.feed.server_version or None,
        "since": format_microtime(row.connection.since),
        "as_of": format_microtime(row.now) if row.live else microtime_or_none(row.heard_at),
        "sentence": cell_view(row).sentence,
        "incident": row.going_on[0].id if row.going_on else None,
        "incidents": len(row.going_on) if row.known or row.going_on else None,
        "leases": total_of(row.counts) if row.known else None,
        "phases": phases if row.known else None,
        "in_trouble": troubled if row.known else None,
        "holder_changes": row.day.changes,
        "holder_changes_by_hour": list(row.numbers),
        "gap_seconds": round(row.day.gap_seconds, 6),
        "unwatched_seconds": round(blind, 6),
    }


STRIP, CELL = "fleet/_strip.html", "fleet/_cell.html"
_VIEWS: Mapping[str, Callable[[FleetRow], CellView | StripView]] = {
    STRIP: strip_view,
    CELL: cell_view,
}


class Drawing(NamedTuple):
    """The HTML of a cluster. `number` is a new one where it differs from the one before."""

    row: FleetRow
    view: CellView | StripView
    html: str
    number: int


class Told:
    """Numbers drawings. A page has those that were there before it was drawn, or newer ones."""

    def __init__(self) -> None:
        self.number = 0  # of the last one
        self._keeping = Lock()

    @property
    def stamp(self) -> str:
        """What a page carries: read it before what the page shows."""
        return f"{PROCESS}-{self.number}"

    def number_of(self, stamp: str) -> int:
        """The number of a stamp; 0 for one of another process."""
        process, _, number = stamp.partition("-")
        own = process == str(PROCESS) and number.isdecimal()
        return int(number[:20]) if own else 0

    def count(self) -> int:
        """The number of one more."""
        with self._keeping:
            self.number += 1
            return self.number

    def keep(self, row: FleetRow, template: str, view: CellView | StripView, html: str) -> Drawing:
        """Keep a drawing as the newest of its cluster."""
        with self._keeping:
            known: Drawing | None = row.feed.drawn.get(template)
            same = known is not None and known.html == html
            number = known.number if known is not None and same else self.number + 1
            drawing = row.feed.drawn[template] = Drawing(row, view, html, number)
            self.number = max(self.number, number)
        return drawing


told = Told()


def drawing_of(row: FleetRow, template: str) -> Drawing:
    """A cluster as HTML, drawn once for all pages until it looks different."""
    known: Drawing | None = row.feed.drawn.get(template)
    if known is not None and known.row is row:
        return known
    view = _VIEWS[template](row)
    if known is not None and known.view == view:
        html = known.html
    else:
        # An exact str: the encoder of frames refuses subclasses.
        html = str.__str__(render_to_string(template, {"strip": view}))
    return told.keep(row, template, view, html)


def ids_of(cluster: str) -> tuple[str, str]:
    """The ids of its strip and of its cell; a page has one of them."""
    return f"strip-{cluster}", f"cell-{cluster}"


def drawings_of(row: FleetRow) -> dict[str, Drawing]:
    """Both forms of a cluster, by their ids."""
    drawings = drawing_of(row, STRIP), drawing_of(row, CELL)
    return dict(zip(ids_of(row.cluster), drawings, strict=True))


def _label(query: QueryDict, name: str) -> str:
    labels = tuple(values_of_labels())
    if not labels and query.get(name):
        raise BadFilter(f"{name} cannot be {quoted(str(query[name]))}: no cluster has a label.")
    return one_of(query, name, ("", *labels))


class FleetFilter(OfLabels, msgspec.Struct, frozen=True, kw_only=True):
    """`by` is the label that groups clusters; `labels` are the wanted ones, each a parameter of its
    own, such as env=prod.
    """

    PARAMETERS = {
        "text": Parameter("q"),
        "by": Parameter("by", _label),
        "page": PAGE,
        "limit": LIMIT,
    }
    text: str = ""
    by: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    sort: str = ""
    page: int = 1
    limit: int = LARGEST_PAGE

    def takes(self, feed: ClusterFeed) -> bool:
        named = self.text.casefold() in feed.store.cluster.casefold()
        return named and self.labelled(feed)


class FleetLinks(ListLinks):
    """None is the bare `/`, which may lead to the view that somebody starts with."""

    def url(self, **changes: Any) -> str:
        url = super().url(**changes)
        return url if "?" in url else all_clusters_url()


class Fleet(List[FleetFilter, FleetRow]):
    """All clusters, the worst first."""

    name = "home"
    reads = FleetFilter
    templates = ("fleet/index.html", "fleet/_board.html")

    def find(self) -> FoundRows[FleetRow]:
        self.request.drawn = told.stamp
        board = running_board()
        feeds = [board.feeds[name] for name in board.clusters if name in board.feeds]
        read = fleet_row if self.answer_as == "json" else latest_row
        rows = [read(feed, self.now) for feed in feeds if self.wanted.takes(feed)]
        rows.sort(key=worst_first)
        places = {value: place for place, value in enumerate(dict.fromkeys(map(self._group, rows)))}
        return self.cut(sorted(rows, key=lambda row: places[self._group(row)]))

    @property
    def links(self) -> FleetLinks:
        return FleetLinks(self.request.path, self.wanted)

    def query(self) -> str:
        return self.links.url(page=self.wanted.page).partition("?")[2]

    def _group(self, row: FleetRow) -> str:
        """The value of the label that groups; "" for a cluster without it, and without groups."""
        return row.feed.labels.get(self.wanted.by, "")

    def item(self, row: FleetRow) -> dict[str, Any]:
        return row_item(row)

    def page(self, found: FoundRows[FleetRow]) -> dict[str, Any]:
        folded, groups = found.total > FEW, []
        for value, rows in groupby(found.rows, key=self._group):
            name = f"{self.wanted.by} {value}" if value else f"no {self.wanted.by}"
            groups.append({"name": name} | _drawn_rows(rows, folded=folded))
        pager = self.links.pager(found.number, found.total)
        return self._frame() | {
            "groups": groups,
            "folded": folded,
            "pager": pager if pager.previous_url or pager.next_url else None,
            "total": found.total,
        }

    def refused(self) -> dict[str, Any]:
        query = self.request.GET
        chosen = {key: typed(query, key) for key in values_of_labels()}
        return self._frame(chosen) | {"board": self.reads.typed(query)}

    def _frame(self, chosen: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What the page has beside its strips. `chosen` are values of labels."""
        chosen = dict(self.wanted.labels) if chosen is None else chosen
        feeds = running_board().feeds
        silent = silent_states((feed.store for feed in feeds.values()), self.now)
        return {
            "board": self.wanted.texts(),
            "labels": [
                {"key": key, "values": values, "chosen": for_input(chosen.get(key, ""))}
                for key, values in values_of_labels().items()
            ],
            "filtered": bool(self.wanted.pairs()),
            "clear_url": all_clusters_url(),
            "here_url": self.links.url(page=self.wanted.page),
            "json_url": self.links.url_as("json"),
            "live_url": FLEET_LIVE_URL,
            "connection": Connection(state=ConnectionState.LIVE, since=self.now),
            "partly_live": partly_live(silent, feeds),
            "as_of": self.now,
            "watched": len(running_board().clusters),
        }


def _drawn_rows(rows: Iterable[FleetRow], *, folded: bool) -> dict[str, Any]:
    """The strips and cells of a group, and how many of its clusters are in trouble."""
    strips, cells, troubled = [], [], 0
    for row in rows:
        calm = row.trouble is Trouble.NONE
        troubled += not calm
        if folded and calm:
            cells.append((row.cluster, drawing_of(row, CELL).html))
        else:
            strips.append((row.cluster, drawing_of(row, STRIP).html))
    says = f"{counted(len(strips) + len(cells), 'cluster')}, {troubled or 'none'} in trouble"
    return {"strips": strips, "cells": cells, "says": says}


@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """All clusters. Without a query, people are led to the view that they start with; where there
    is one cluster alone, to that.
    """
    refusal = check_view(request)
    if refusal is not None:  # a stranger does not learn its name
        return refusal
    asks_nothing = not request.GET and "HX-Request" not in request.headers
    if asks_nothing and (start := start_of(request.user)) is not None:
        if not (problem := problem_of(start, request.user, clock.now())):
            return redirect(page_url(start))
        messages.warning(request, f"You start with {start.name!r}, but: {problem}")
    clusters = running_board().clusters
    if len(clusters) == 1 and request.GET.get("format") != "json":
        return redirect("overview", cluster=next(iter(clusters)))
    with drawing(request):
        return Fleet(cast("ClusterRequest", request)).answer()
