"""What a text finds: pages and actions, and in one cluster Leases, deleted ones too, holders,
namespaces and incidents.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from dashboard.access import roles
from dashboard.pages.search.names import BEGINS, BEGINS_WORD, BESIDE, EXACT, INSIDE, ClusterNames
from dashboard.parts.cause_words import CAUSE_ICONS, CAUSE_WORDS
from dashboard.parts.formatting import capitalized, shortened, utc, when
from dashboard.parts.holdings import heartbeat_of, host_of
from dashboard.parts.incident_line import MAX_SENTENCE, incident_url, visible
from dashboard.parts.lease_row import UNKNOWN, state_of
from dashboard.parts.names import holder_view, lease_url, shown_holder
from dashboard.parts.page_links import holder_page
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import ChangeType
from leases.domain.figures import SEVERITY
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import PastPhase
from leases.history.find_incidents import BriefIncident
from leases.history.states_as_of import changes_before
from leases.tracking.tracked_lease import Tracked

SHOWN = {
    "lease": 8, "holder": 4, "namespace": 4, "incident": 4, "view": 4, "page": 4, "action": 4,
}  # fmt: skip
MAX_WORDS = 4


class FoundLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the answer; `rank` says where the text was found, `phase` is that of a Lease.
    `whole`: the text is all of its name, and of no other one's.
    """

    group: str
    label: str
    detail: str = ""
    url: str
    cluster: str = ""
    phase: str = ""
    icon: str = ""
    rank: int = INSIDE
    near: str = ""  # a moment near to the times in the label
    whole: bool = False

    @property
    def parts(self) -> tuple[str, str]:
        """The namespace with its slash, and the name."""
        namespace, slash, name = self.label.rpartition("/") if self.phase else ("", "", self.label)
        return namespace + slash, name


class SearchedText(msgspec.Struct, frozen=True):
    """A text that is searched for in so many clusters at once."""

    text: str
    now: datetime
    clusters: int = 1

    @property
    def words(self) -> list[str]:
        return self.text.lower().split()[:MAX_WORDS]

    @property
    def key(self) -> ObjectName | None:
        """The Lease whose whole name it may be."""
        namespace, slash, name = self.text.lower().partition("/")
        one = slash and namespace and name and "/" not in name and " " not in self.text
        return ObjectName(namespace, name) if one else None


class ClusterSearch:
    """One text, searched for in one cluster. Each list has its best lines first."""

    def __init__(self, cluster: WatchedCluster, names: ClusterNames, asked: SearchedText) -> None:
        self._cluster, self.names, self._asked = cluster, names, asked
        self._name = cluster.name
        self._lines = self._find_leases()

    def all(self) -> list[FoundLine]:
        return [*self._leases(), *self._deleted(), *self._holders(), *self._incidents()]

    def leases_called(self, words: list[str], most: int) -> list[FoundLine]:
        """The best of those that are there."""
        found = _by_rank(self.names.leases.find(words, self._asked.clusters))
        return self._best_of(found)[:most]

    def namespaces(self) -> Iterator[tuple[str, str]]:
        """Those that have all words, each with its URL."""
        path = reverse("leases", args=[self._name])
        for name in self._cluster.store.namespaces():
            if all(word in name for word in self._asked.words):
                yield name, f"{path}?{urlencode({'namespace': name})}"

    def _find_leases(self) -> Mapping[str, int]:
        lines = self.names.leases.find(self._asked.words, self._asked.clusters)
        return lines if self._asked.key is None else lines | {str(self._asked.key): EXACT}

    def _leases(self) -> list[FoundLine]:
        return self._best_of(_by_rank(self._lines))

    def _best_of(self, by_rank: list[tuple[int, list[str]]]) -> list[FoundLine]:
        """Of equals those in trouble come first, and node heartbeats last."""
        best: list[FoundLine] = []
        for rank, lines in by_rank:
            there = [one for line in lines if (one := self._cluster.store.get(_key(line)))]
            there.sort(key=_of_equals)
            left = SHOWN["lease"] - len(best)
            best += [_lease(self._name, one, rank) for one in there[:left]]
            if len(best) == SHOWN["lease"]:
                break
        return best

    def _deleted(self) -> list[FoundLine]:
        """The best of those that are no more, as history tells."""
        ranks: dict[ObjectName, int] = {}
        for rank, lines in _by_rank(self._lines):
            for line in sorted(lines):
                if len(ranks) < SHOWN["lease"] and not self._cluster.store.get(key := _key(line)):
                    ranks[key] = rank
        known = changes_before(self._name, list(ranks), self._asked.now) if ranks else {}
        return [
            FoundLine(
                group="lease",
                label=str(key),
                detail=f"deleted {when(last.at, self._asked.now)}",
                url=lease_url(self._name, key),
                cluster=self._name,
                phase=PastPhase.DELETED,
                rank=ranks[key],
            )
            for key, (*_, last) in known.items()
            if last.change is ChangeType.DELETED
        ]

    def _holders(self) -> list[FoundLine]:
        """Of equals those first that hold something, and nodes last that may hold their own
        heartbeat alone.
        """
        names = self.names
        found = {
            host: (rank, "holds nothing now" if line in names.former else "")
            for line, rank in names.holders.find(self._asked.words, self._asked.clusters).items()
            if (host := names.identities.get(line))
        }
        for line, rank in self._lines.items():
            namespace, host = line.split("/", 1)
            holds = host in found and not found[host][1]
            is_node = namespace == NODE_LEASES and rank < BESIDE and not holds
            if is_node and heartbeat_of(self._cluster.store, host):
                found[host] = rank, "node"
        best = sorted(found.items(), key=lambda one: (*one[1], one[0]))[: SHOWN["holder"]]
        lines = [self._holder(host, host, detail, rank) for host, (rank, detail) in best]
        typed = self._asked.text
        host_typed = host_of(typed)
        if typed in names.whole and host_typed not in found:
            shown = f"host {shown_holder(host_typed)}"
            lines.insert(0, self._holder(host_typed, typed, shown, EXACT))
        return lines

    def _holder(self, host: str, label: str, detail: str, rank: int) -> FoundLine:
        return FoundLine(
            group="holder",
            label=shown_holder(label),
            detail=detail,
            url=holder_page(self._name, host),
            cluster=self._name,
            rank=rank,
        )

    def _incidents(self) -> list[FoundLine]:
        """Of equals those first that go on, then the newest."""
        texts = self.names.incidents
        lines = texts.text.find(self._asked.words, self._asked.clusters)
        found = [one for line in lines if (one := texts.by_line.get(line))]
        ranked = [(self._rank(one), one) for one in found]
        ranked.sort(key=lambda one: one[1].began, reverse=True)
        ranked.sort(key=lambda one: (one[0], one[1].ended is not None))
        return [
            incident_found(self._name, one, self._asked.now, rank)
            for rank, one in ranked[: SHOWN["incident"]]
        ]

    def _rank(self, incident: BriefIncident) -> int:
        text = " ".join(self._asked.words)
        if incident.id.startswith(text):
            return EXACT if incident.id == text else BEGINS
        causes = CAUSE_WORDS[incident.cause].lower(), incident.cause.value
        return BEGINS_WORD if any(one.startswith(text) for one in causes) else BESIDE


def incident_found(cluster: str, incident: BriefIncident, now: datetime, rank: int) -> FoundLine:
    over = "" if incident.ended else ", goes on"
    return FoundLine(
        group="incident",
        label=shortened(visible(incident.sentence), MAX_SENTENCE),
        detail=f"{capitalized(CAUSE_WORDS[incident.cause])}, {when(incident.began, now)}{over}",
        url=incident_url(cluster, incident.id),
        cluster=cluster,
        icon=CAUSE_ICONS[incident.cause],
        rank=rank,
        near=utc(incident.began),
    )


def _by_rank(lines: Mapping[str, int]) -> list[tuple[int, list[str]]]:
    """The lines of each rank, the best rank first."""
    ranks: dict[int, list[str]] = {}
    for line, rank in lines.items():
        ranks.setdefault(rank, []).append(line)
    return sorted(ranks.items())


def _of_equals(tracked: Tracked) -> tuple[bool, int, ObjectName]:
    return tracked.kind is Kind.HEARTBEAT, SEVERITY[tracked.phase], tracked.key


def _key(line: str) -> ObjectName:
    return ObjectName(*line.split("/", 1))


def _lease(cluster: str, tracked: Tracked, rank: int) -> FoundLine:
    return FoundLine(
        group="lease",
        label=str(tracked.key),
        detail=_stands(tracked),
        url=lease_url(cluster, tracked.key),
        cluster=cluster,
        phase=state_of(tracked),
        rank=rank,
    )


def _stands(tracked: Tracked) -> str:
    """Its phase and its holder in a few words."""
    phase, holder = state_of(tracked), holder_view(tracked.holder)
    if tracked.kind is Kind.HEARTBEAT or holder is None or phase == UNKNOWN:
        return f"heartbeat, {phase}" if tracked.kind is Kind.HEARTBEAT else phase
    if phase == Phase.EXPIRED:
        return f"expired, last held by {holder.short}"
    return f"held by {holder.short}" if phase == Phase.HELD else f"{phase}, held by {holder.short}"


Place = tuple[str, str, str | None, str]  # a route, its label, what it takes, and other words
OF_CLUSTER: tuple[Place, ...] = (
    ("overview", "Overview", None, "is anything wrong attention"),
    ("leases", "Leases", None, "list"),
    ("timeline", "Timeline", None, "who held what when playhead"),
    ("holders", "Holders", None, "what does each pod or node hold"),
    ("nodes", "Nodes", None, "heartbeats grid"),
    ("incidents", "Incidents", None, "causes why"),
    ("near_misses", "Near misses", None, "incidents late renewals"),
    ("history", "History", None, "changes export csv"),
    ("stretch", "Leases ranked by what happened", None, "history stretch changes gaps"),
    ("reliability", "Reliability", None, "objective slo quarter week"),
    ("wall", "Wall display", None, "room screen tv"),
    ("deletions", "Deletions of many Leases", roles.EDIT, "bulk reports"),
)
OF_BOARD: tuple[Place, ...] = (
    ("saved_views", "Saved views", None, "bookmarks start page"),
    ("timeline_all", "Timeline of all clusters", None, "who lost holders when"),
    ("history_all", "History of all clusters", None, "changes export csv"),
    ("incidents_all", "Incidents of all clusters", None, "causes why"),
    ("audit", "Audit trail", roles.READ_TRAIL, "writes who edited"),
    ("api", "JSON for programs", None, "api openapi"),
    ("api_tokens", "API tokens", None, "programs"),
    ("clusters", "Manage clusters", roles.CLUSTERS, "add kubeconfig pause label remove"),
    ("wall_links", "Wall links", roles.WALL_LINKS, "screens"),
    ("notifications", "Notifications", roles.RECEIVERS, "receivers alerts webhooks email"),
    ("notification_log", "Sent notifications", roles.RECEIVERS, "log messages"),
    ("badges", "Badges", roles.BADGES, "svg"),
    ("security_log", "Security log", roles.READ_SECURITY_LOG, "sign in"),
    ("people", "People", roles.MANAGE_PEOPLE, "users roles"),
)
ACTIONS: tuple[Place, ...] = (
    ("new_lease", "Create a Lease", roles.EDIT, "new add"),
    ("delete_many", "Delete many Leases", roles.EDIT, "remove bulk"),
    ("new_cluster", "Add a cluster", roles.CLUSTERS, "new kubeconfig watch"),
    ("new_receiver", "Add a receiver of notifications", roles.RECEIVERS, "new webhook"),
    ("quiet_times", "Mute notifications", roles.RECEIVERS, "quiet silence maintenance"),
)
# The actions of one Lease, with the verb that the cluster is asked about.
OF_LEASE = (
    ("lease_edit", "Edit", "patch"),
    ("lease_release", "Release", "patch"),
    ("lease_hand_over", "Hand over", "patch"),
    ("lease_delete", "Delete", "delete"),
)
OF_THIS_CLUSTER = {"new_lease", "delete_many"}
