"""What pages over several clusters share: which clusters are wanted, and which of them are live."""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from itertools import groupby, islice
from typing import Any, Self, cast

import msgspec
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import redirect

from dashboard.access.guards import ClusterRequest, check_view, drawing
from dashboard.board import running_board
from dashboard.feed import ClusterFeed, stamp_of
from dashboard.lists import responses
from dashboard.lists.url_parameters import (
    BadFilter,
    Parameter,
    UrlState,
    for_input,
    quoted,
    text,
    typed,
)
from dashboard.parts.formatting import counted, listed, when
from dashboard.parts.names import cluster_path
from dashboard.watched_cluster import WatchedCluster
from leases.domain.watched_times import ConnectionState
from leases.tracking.store import Store

SAID = 12  # names of clusters that a sentence repeats
MAX_NAMESPACES = 500  # offered; any other can be typed
OFFERED = 300  # clusters that a form offers; others can be written into the URL


def values_of_labels() -> dict[str, list[str]]:
    """The labels that clusters have, each with its values."""
    found: dict[str, set[str]] = {}
    for feed in running_board().feeds.values():
        for key, value in feed.labels.items():
            found.setdefault(key, set()).add(value)
    return {key: sorted(found[key]) for key in sorted(found)}


class OfLabels(UrlState):
    """A filter whose `labels` each are a parameter of their own, such as env=prod."""

    __slots__ = ()
    labels: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, query: QueryDict, now: datetime | None = None, **usual: Any) -> Self:
        wanted = ((key, text(query, key)) for key in values_of_labels())
        labels = tuple((key, value) for key, value in wanted if value)
        return super().read(query, now, labels=labels, **usual)

    def pairs(self) -> list[tuple[str, str]]:
        return [*self.labels, *super().pairs()]

    def labelled(self, feed: ClusterFeed) -> bool:
        return all(feed.labels.get(key) == value for key, value in self.labels)


def named_clusters(query: QueryDict, name: str) -> tuple[str, ...]:
    """The clusters that are named, each once. Raises BadFilter for one that is not watched."""
    watched, found = running_board().clusters, dict.fromkeys(filter(None, query.getlist(name)))
    for one in found:
        if one not in watched:
            names = listed(list(watched), SAID) or "none"
            raise BadFilter(
                f"{name} cannot be {quoted(one)}: no cluster is called so. Watched: {names}."
            )
    return tuple(found)


class OfClusters(OfLabels):
    """A filter with the wanted `clusters`: those named, those with the labels, or all."""

    __slots__ = ()
    CLUSTERS = {"clusters": Parameter("cluster", named_clusters)}
    clusters: tuple[str, ...]

    @classmethod
    def read(cls, query: QueryDict, now: datetime | None = None, **usual: Any) -> Self:
        return super().read(query, now, clusters=named_clusters(query, "cluster"), **usual)

    def chosen(self) -> list[WatchedCluster]:
        """In the order of the settings."""
        board = running_board()
        return [
            cluster
            for name, cluster in board.clusters.items()
            if (not self.clusters or name in self.clusters)
            and name in board.feeds
            and self.labelled(board.feeds[name])
        ]

    def which(self) -> list[tuple[str, str]]:
        """The parameters that choose clusters."""
        return [*self.labels, *(("cluster", name) for name in self.clusters)]

    def says(self) -> str:
        """Which clusters are wanted, in words; "" for all."""
        said = [f"{key}={value}" for key, value in self.labels]
        named = [f"cluster is {listed(list(self.clusters), SAID)}"] if self.clusters else []
        return ", ".join([*named, *said])


class Chosen(OfClusters, msgspec.Struct, frozen=True, kw_only=True):
    """Which clusters a page shows, whatever else its URL says."""

    PARAMETERS = OfClusters.CLUSTERS
    clusters: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


def chosen_by(query: str | None) -> frozenset[str]:
    """The names of the clusters that a page with this query shows; none for a page that shows
    why it cannot.
    """
    if query is None:
        return frozenset()
    try:
        wanted = Chosen.read(QueryDict(query.removeprefix("?")))
    except (BadFilter, SuspiciousOperation):  # or more parameters than Django reads
        return frozenset()
    return frozenset(one.name for one in wanted.chosen())


class NotLive(msgspec.Struct, frozen=True):
    """A cluster that cannot tell what happens there now; `says` up to when it is known."""

    name: str
    url: str
    says: str


def not_live(clusters: Iterable[WatchedCluster], now: datetime) -> list[NotLive]:
    return [
        NotLive(one.name, cluster_path("overview", one.name), _known_until(one, now))
        for one in clusters
        if one.store.connection.shown(now).state is not ConnectionState.LIVE
    ]


class PartlyLive(msgspec.Struct, frozen=True):
    """What the pill of a page over clusters says in place of Live; `state` is the worst of them."""

    says: str
    state: ConnectionState

    @property
    def shape(self) -> str:
        calm = self.state in (ConnectionState.CONNECTING, ConnectionState.PAUSED)
        return "late" if calm else "expired"


_WORST_FIRST = (
    ConnectionState.STALE,
    ConnectionState.REFUSED,
    ConnectionState.CONNECTING,
    ConnectionState.PAUSED,
)


def silent_states(stores: Iterable[Store], now: datetime) -> dict[str, ConnectionState]:
    """The clusters that are not live, each with the state of its watch."""
    shown = ((one.cluster, one.connection.shown(now).state) for one in stores)
    return {name: state for name, state in shown if state is not ConnectionState.LIVE}


def partly_live(
    silent: Mapping[str, ConnectionState], clusters: Collection[str]
) -> PartlyLive | None:
    """None while all clusters of the page are live."""
    states = [state for name, state in silent.items() if name in clusters]
    if not states:
        return None
    live, of = len(clusters) - len(states), len(clusters)
    return PartlyLive(f"{live:,} of {of:,} live", min(states, key=_WORST_FIRST.index))


def _known_until(cluster: WatchedCluster, now: datetime) -> str:
    read_at = cluster.read_at(now)
    return f"as of {when(read_at, now)}" if read_at else "not read yet"


def not_live_items(clusters: Iterable[WatchedCluster], now: datetime) -> dict[str, Any]:
    """What JSON says beside its items: the clusters that may have more than it shows."""
    told = ((one.name, responses.unless_live(one, now)) for one in clusters)
    return {"not_live": [{"cluster": name} | fields for name, fields in told if fields]}


def choice_of_clusters(
    wanted: OfClusters,
    clusters: Sequence[WatchedCluster],
    now: datetime,
    query: QueryDict | None = None,
) -> dict[str, Any]:
    """The part of a form that chooses clusters, and what the chosen ones cannot tell.

    `query` is one that is refused: its labels are shown as they were typed.
    """
    chosen = (
        {key: typed(query, key) for key in values_of_labels()} if query else dict(wanted.labels)
    )
    every = list(running_board().clusters)
    silent = not_live(clusters, now)
    states = silent_states([one.store for one in clusters], now)
    return {
        "names": [(name, name in wanted.clusters) for name in every[:OFFERED]],
        "label": listed(list(wanted.clusters), 2) if wanted.clusters else "All clusters",
        "labels": [
            {"key": key, "values": values, "chosen": for_input(chosen.get(key, ""))}
            for key, values in values_of_labels().items()
        ],
        "says": wanted.says(),
        "number": len(clusters),
        "of": counted(len(clusters), "cluster"),
        "not_live": silent[:SAID],
        "partly_live": partly_live(states, [one.name for one in clusters]),
        "more_not_live": max(0, len(silent) - SAID),
    }


def offered_namespaces(clusters: Sequence[WatchedCluster]) -> list[str]:
    """The first names, each once."""
    names = heapq.merge(*(one.store.namespaces() for one in clusters))
    return list(islice((name for name, _ in groupby(names)), MAX_NAMESPACES))


def of_all_clusters(
    of_one: str,
) -> Callable[[Callable[[ClusterRequest], HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """For users with the right to read. Where there is one cluster alone, people are led to its
    page, which is called `of_one`."""

    def guard(
        view: Callable[[ClusterRequest], HttpResponseBase],
    ) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest) -> HttpResponseBase:
            refusal = check_view(request)
            if refusal is not None:  # a stranger does not learn its name
                return refusal
            clusters = running_board().clusters
            others = set(request.GET.getlist("cluster")) - {*clusters, ""}
            by_person = request.GET.get("format") in (None, "", "html")
            if len(clusters) == 1 and by_person and not others:
                query = request.GET.copy()
                query.pop("cluster", None)
                url = cluster_path(of_one, next(iter(clusters)))
                return redirect(f"{url}?{query.urlencode()}" if query else url)
            about = cast("ClusterRequest", request)
            about.spans = True
            about.drawn = stamp_of(running_board().feeds.values())
            with drawing(request):
                return view(about)

        return guarded

    return guard
