"""The incidents of several clusters in one list, declared as that of one cluster is."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest
from dashboard.lists.declaration import FoundRows
from dashboard.pages.incidents import list as of_one
from dashboard.parts import across
from dashboard.parts.formatting import counted, listed
from dashboard.parts.key_figures import Calm
from dashboard.watched_cluster import WatchedCluster
from leases.history.find_incidents import StoredIncident


class IncidentsOfClusters(across.OfClusters, of_one.IncidentFilter, frozen=True, kw_only=True):
    """`clusters` and `labels` choose clusters; without them, all are wanted."""

    PARAMETERS = across.OfClusters.CLUSTERS | of_one.IncidentFilter.PARAMETERS
    clusters: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def plain(self) -> bool:
        """Whichever the clusters are."""
        return self.replace(clusters=(), labels=(), limit=of_one.PAGE_SIZE) == type(self)()


class IncidentsAcross(of_one.IncidentList):
    """As the list of one cluster; each row names its own."""

    name = "incidents_all"
    reads = IncidentsOfClusters
    wanted: IncidentsOfClusters
    shows_now = False
    spans_clusters = True

    @cached_property
    def clusters(self) -> Sequence[WatchedCluster]:
        return self.wanted.chosen()

    def told(self) -> dict[str, Any]:
        return across.not_live_items(self.clusters, self.now)

    def file_name(self) -> str:
        return f"incidents-{self.now:%Y%m%dT%H%M%SZ}"

    def page(self, found: FoundRows[StoredIncident]) -> dict[str, Any]:
        return super().page(found) | {"plain": self.wanted.plain and bool(self.clusters)}

    def _no_incident(self) -> Calm:
        silent = [f"{one.name} ({one.says})" for one in across.not_live(self.clusters, self.now)]
        if silent:
            text = f"What happens now is not known of {listed(silent, 5)}."
            return Calm("No unplanned incident is known", text, "i-unplug")
        text = "As far as each of them was watched."
        return Calm(f"No incident in {counted(len(self.clusters), 'cluster')}", text, "i-clock")

    def refused(self) -> dict[str, Any]:
        typed = across.choice_of_clusters(self.wanted, self.clusters, self.now, self.request.GET)
        return super().refused() | {"across": typed}

    def _beside(self) -> dict[str, Any]:
        return {
            "across": across.choice_of_clusters(self.wanted, self.clusters, self.now),
            "confidences": of_one.confidences(),
            "namespaces": across.offered_namespaces(self.clusters),
        }


@require_safe
@across.of_all_clusters("incidents")
def incidents_all(request: ClusterRequest) -> HttpResponseBase:
    """The list as a page, JSON, or all of it as CSV."""
    return IncidentsAcross(request).answer()
