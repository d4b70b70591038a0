"""The changes of several clusters in one list, declared as that of one cluster is."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest
from dashboard.lists.declaration import FoundRows
from dashboard.pages.history.changes import History, export_name, stretch_of
from dashboard.parts import across
from dashboard.parts.change_sentence import signed_lines, with_known_causes
from dashboard.parts.page_links import HistoryState
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import Change


class HistoryOfClusters(across.OfClusters, HistoryState, frozen=True, kw_only=True):
    """`clusters` and `labels` choose clusters; without them, all are wanted."""

    PARAMETERS = across.OfClusters.CLUSTERS | HistoryState.PARAMETERS
    clusters: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


class HistoryAcross(History):
    """As the list of one cluster; each row names its own. It has no strip: the timeline over
    several clusters shows when most happened.
    """

    name = "history_all"
    reads = HistoryOfClusters
    wanted: HistoryOfClusters
    shows_now = False
    spans_clusters = True

    @cached_property
    def clusters(self) -> Sequence[WatchedCluster]:
        return self.wanted.chosen()

    def told(self) -> dict[str, Any]:
        return across.not_live_items(self.clusters, self.now)

    def file_name(self) -> str:
        return export_name("clusters", self.filter, self.now)

    def page(self, found: FoundRows[Change]) -> dict[str, Any]:
        changes = with_known_causes(list(found.rows))
        return {
            "board": self._board(found),
            "lines": signed_lines(changes, self.now, self.request.user),
            "across": across.choice_of_clusters(self.wanted, self.clusters, self.now),
            "timeline_url": self._timeline_url(),
            "namespaces": across.offered_namespaces(self.clusters),
        }

    def _timeline_url(self) -> str:
        """The same clusters, kinds and time."""
        query = [*self.wanted.which(), *stretch_of(self.wanted, self.now)]
        query += [("kind", kind) for kind in self.wanted.kind]
        return f"{reverse('timeline_all')}?{urlencode([one for one in query if one[1]])}"

    def refused(self) -> dict[str, Any]:
        typed = across.choice_of_clusters(self.wanted, self.clusters, self.now, self.request.GET)
        return super().refused() | {"across": typed}


@require_safe
@across.of_all_clusters("history")
def history_all(request: ClusterRequest) -> HttpResponseBase:
    """The matching changes as a page or JSON, or streamed as CSV or NDJSON."""
    return HistoryAcross(request).answer()
