"""One time axis over several clusters: which elections lost their holder when, in which cluster."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest
from dashboard.board import running_board
from dashboard.charts.lanes import fog
from dashboard.charts.time_axis import Scale
from dashboard.lists.controls import ListLinks
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import LIMIT, PAGE, Parameter, typed, words
from dashboard.pages.timeline import drawn_lanes
from dashboard.pages.timeline.lane_query import USUAL_KINDS, Lanes, TimelineLane, lost_lanes
from dashboard.pages.timeline.view import stretch_view, unseen_of
from dashboard.parts import across, time_range
from dashboard.parts.formatting import age, counted, listed
from dashboard.parts.incident_line import bands_by_lease, incidents_between
from dashboard.parts.names import cluster_path
from dashboard.parts.page_links import shown_time
from dashboard.watched_cluster import WatchedCluster
from leases.domain.kind import Kind
from leases.domain.watched_times import UnwatchedTime
from leases.history.timeline_lanes import Losses, lost_between
from leases.history.watched_spans import unwatched_of

EACH = 5  # lanes of one cluster
MOST = 200  # lanes of one page


class TimelineOfClusters(across.OfClusters, time_range.StretchFilter, frozen=True, kw_only=True):
    """`limit` counts the lanes of a page, of which each cluster has EACH at most."""

    PARAMETERS = (
        across.OfClusters.CLUSTERS
        | time_range.StretchFilter.PARAMETERS
        | {"kinds": Parameter("kind", words, Kind), "limit": LIMIT, "page": PAGE}
    )
    clusters: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    kinds: tuple[Kind, ...] = ()
    limit: int = 12 * EACH

    @property
    def each(self) -> int:
        return min(EACH, self.limit)

    @property
    def clusters_at_once(self) -> int:
        return max(1, min(self.limit, MOST) // self.each)


class ClusterLanes(msgspec.Struct, frozen=True):
    """The lanes of one cluster that are drawn, of so many."""

    cluster: WatchedCluster
    lanes: Lanes


class LaneRow(msgspec.Struct, frozen=True):
    """One lane of one cluster."""

    of: ClusterLanes
    lane: TimelineLane


class TimelineAcross(List[TimelineOfClusters, LaneRow]):
    """The clusters in which elections had no holder for longest come first."""

    name = "timeline_all"
    reads = TimelineOfClusters
    templates = ("timeline/across.html", "timeline/_across.html")
    spans_clusters = True
    shown: time_range.TimeRange
    lost: dict[str, Losses]

    @cached_property
    def clusters(self) -> Sequence[WatchedCluster]:
        return self.wanted.chosen()

    @cached_property
    def blind(self) -> dict[str, tuple[UnwatchedTime, ...]]:
        """What nobody watched of each cluster."""
        names, shown = [one.name for one in self.clusters], self.shown
        return unwatched_of(names, since=shown.since, until=shown.until, now=self.now)

    def told(self) -> dict[str, Any]:
        return across.not_live_items(self.clusters, self.now)

    def find(self) -> FoundRows[LaneRow]:
        self.shown = time_range.window(self.wanted, self.now)
        names, kinds = [one.name for one in self.clusters], self.wanted.kinds or USUAL_KINDS
        self.lost = lost_between(names, kinds, self.shown.since, self.shown.until)
        worst = sorted(self.lost, key=self._gravity)
        by_page = self.wanted.replace(limit=self.wanted.clusters_at_once)
        number, place = by_page.page_of(len(worst))
        board = running_board().clusters
        drawn = [self._lanes_of(board[name]) for name in worst[place]]
        total = sum(min(self.wanted.each, len(some.leases)) for some in self.lost.values())
        rows = [LaneRow(of, lane) for of in drawn for lane in of.lanes.page]
        return FoundRows(rows, total, number, more=drawn)

    def _gravity(self, cluster: str) -> tuple[float, int, str]:
        some = self.lost[cluster].leases
        return -sum(one.gap_seconds for one in some), -sum(one.times for one in some), cluster

    def _lanes_of(self, cluster: WatchedCluster) -> ClusterLanes:
        some = self.lost[cluster.name].leases
        keys = [one.key for one in some[: self.wanted.each]]
        return ClusterLanes(
            cluster, lost_lanes(cluster.store, keys, len(some), self.shown, self.now)
        )

    def next_url(self, found: FoundRows[LaneRow]) -> str | None:
        if found.number * self.wanted.clusters_at_once >= len(self.lost):
            return None
        url = self.links.url_as("json", page=found.number + 1)
        return self.request.build_absolute_uri(url)

    def item(self, row: LaneRow) -> dict[str, Any]:
        blind = row.of.lanes.blind
        return drawn_lanes.lane_item(row.of.cluster.name, row.lane, self.shown, blind)

    def page(self, found: FoundRows[LaneRow]) -> dict[str, Any]:
        scale = Scale(self.shown.since, self.shown.until)
        links = ListLinks(self.request.path, self.wanted)
        by_page = self.wanted.replace(limit=self.wanted.clusters_at_once)
        return {
            "across": across.choice_of_clusters(self.wanted, self.clusters, self.now),
            "stretch": stretch_view(self.shown, now=self.now, around=scale, blind=()),
            "links": time_range.stretch_links(links, self.wanted, self.shown, now=self.now)
            | {"now": links.url(since=None, until=None, at=None), "clear": links.path}
            | {"json": links.url_as("json", page=self.wanted.page)},
            "kept": self._kept(),
            "pager": ListLinks(self.request.path, by_page).pager(found.number, len(self.lost)),
            "groups": [self._group(one, scale) for one in found.more],
            "says": self._says(),
            "history_url": self._history_url(),
            "silent": self._silent(),
        }

    def _kept(self) -> list[tuple[str, str]]:
        """What the forms have no field for."""
        return [pair for pair in self.wanted.pairs() if pair[0] in ("range", "from", "to", "kind")]

    def _group(self, one: ClusterLanes, scale: Scale) -> dict[str, Any]:
        name, lanes, shown = one.cluster.name, one.lanes, self.shown
        as_of = one.cluster.as_of(self.now)
        end = None if shown.live and as_of == self.now else min(shown.until, as_of)
        time = shown_time(shown, self.wanted.range, None if shown.follows else shown.at)
        incidents = incidents_between(name, shown.since, shown.until)
        keys = [lane.key for lane in lanes.page]
        views = drawn_lanes.lane_views(
            name,
            lanes,
            shown,
            unseen=unseen_of(lanes.blind, shown),
            now=self.now,
            time=time,
            zoom=time_range.zoom_to(ListLinks(self.request.path, self.wanted), shown, now=self.now),
            end=end,
            bands=bands_by_lease(name, incidents, keys, scale, end or self.now),
        )
        total, least = lanes.chosen.total, "" if self.lost[name].whole else "at least "
        whose = "its" if total == 1 else "their"
        return {
            "cluster": name,
            "url": self._own_timeline(name),
            "says": f"{least}{counted(total, 'Lease')} lost {whose} holder",
            "more": total - len(keys),
            "lanes": [view | {"key": f"{name}/{view['key']}"} for view in views],
            "blind": fog(((span.since, span.until) for span in lanes.blind), scale),
            "blind_for": _length(lanes.blind),
        }

    def _own_timeline(self, cluster: str) -> str:
        wanted, shown = self.wanted, self.shown
        own = time_range.TimelineFilter(range=wanted.range, at=wanted.at, kinds=wanted.kinds)
        if not shown.live:
            own = own.replace(since=shown.since, until=shown.until)
        return f"{cluster_path('timeline', cluster)}?{own.query()}"

    def _history_url(self) -> str:
        """The changes of the same clusters, kinds and time."""
        time = shown_time(self.shown, self.wanted.range, None).of_history()
        kinds = [("kind", kind.value) for kind in self.wanted.kinds or USUAL_KINDS]
        query = [*self.wanted.which(), *time.items(), *kinds]
        return f"{reverse('history_all')}?{urlencode([one for one in query if one[1]])}"

    def _says(self) -> str:
        """Which clusters had no loss, and were watched all the time."""
        quiet = (one.name for one in self.clusters if not self.blind.get(one.name))
        names = [name for name in quiet if name not in self.lost]
        what = "election" if not self.wanted.kinds else "such Lease"
        return f"No {what} lost its holder in {listed(names, across.SAID)}." if names else ""

    def _silent(self) -> list[tuple[str, str]]:
        """The clusters of which a part was not watched, each with how much."""
        return [
            (name, "all of it" if unseen_of(some, self.shown) == "whole" else _length(some))
            for name, some in self.blind.items()
            if some
        ]

    def refused(self) -> dict[str, Any]:
        query, links = self.request.GET, ListLinks(self.request.path, self.wanted)
        shown = time_range.window(self.wanted, self.now)
        scale = Scale(shown.since, shown.until)
        stretch = stretch_view(shown, now=self.now, around=scale, blind=())
        return {
            "across": across.choice_of_clusters(self.wanted, self.clusters, self.now, query),
            "stretch": stretch | {"at_input": typed(query, "at")},
            "links": time_range.stretch_links(links, self.wanted, shown, now=self.now)
            | {"now": links.path, "clear": links.path},
        }


def _length(blind: Sequence[UnwatchedTime]) -> str:
    return age(sum(one.seconds for one in blind)) if blind else ""


@require_safe
@across.of_all_clusters("timeline")
def timeline_all(request: ClusterRequest) -> HttpResponseBase:
    """Lanes of several clusters, as a page, as the part that a choice changes, or as JSON."""
    return TimelineAcross(request).answer()
