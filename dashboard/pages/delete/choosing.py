"""Which Leases a URL chooses to delete: by name, by a filter of the list, or ready selections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict

from dashboard.board import running_board
from dashboard.pages.delete.meaning import ALIVE
from dashboard.parts.formatting import age, counted, listed
from dashboard.parts.frame.list_controls import says
from dashboard.parts.kept.node_book import NodeBook
from dashboard.parts.kept.watched_cluster import WatchedCluster
from dashboard.parts.query.lease_filter import LeaseFilter, read_filter
from dashboard.parts.query.lease_search import find
from dashboard.parts.query.url_parameters import BadFilter, one_of, quoted
from leases.actions.delete_many import report
from leases.actions.delete_many.choice import ChosenLease, chosen, digest
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.models import Deletion
from leases.tracking.tracked_lease import Tracked

EVERY = 10**9
ABANDONED, ORPHANED = "abandoned", "orphaned"
READY = ("", ABANDONED, ORPHANED)
LEAVE, DELETE = "leave", "delete"  # what to do with the held ones


class DeletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """`leases` are in name order; `with_held`: those that are held are to be deleted too."""

    words: str
    leases: Sequence[Tracked]
    with_held: bool
    missing: int = 0  # chosen by name and not there any more

    @property
    def held(self) -> int:
        return sum(one.phase in ALIVE for one in self.leases)

    @property
    def to_delete(self) -> list[Tracked]:
        if self.with_held:
            return list(self.leases)
        return [one for one in self.leases if one.phase not in ALIVE]

    def digest(self) -> str:
        return digest((one.lease, one.phase in ALIVE) for one in self.to_delete)

    def as_chosen(self) -> list[ChosenLease]:
        return [chosen(one.lease, held=one.phase in ALIVE) for one in self.to_delete]


def choose(cluster: WatchedCluster, query: QueryDict) -> DeletionChoice | None:
    """Read the choice; None if the URL names none. Raises BadFilter."""
    ready = one_of(query, "ready", READY)
    with_held = one_of(query, "held", (LEAVE, DELETE)) == DELETE
    if ready:
        words, leases = _ready(cluster, ready)
        return DeletionChoice(words=words, leases=leases, with_held=with_held)
    names = _again(cluster, str(query["again"])) if "again" in query else _names(query)
    if names:
        found = [cluster.store.get(name) for name in sorted(set(names))]
        there = [one for one in found if one is not None]
        words = "Not deleted the last time" if "again" in query else "Chosen by name"
        missing = len(found) - len(there)
        return DeletionChoice(words=words, leases=there, with_held=with_held, missing=missing)
    wanted = read_filter(query).replace(page=1, limit=EVERY, sort="namespace")
    if "again" in query or wanted == LeaseFilter().replace(limit=EVERY, sort="namespace"):
        return None
    return DeletionChoice(
        words=says(wanted), leases=find(cluster.store, wanted).page, with_held=with_held
    )


def ready_selections(cluster: WatchedCluster) -> list[dict[str, object]]:
    """The ready selections with their numbers, for people who have not chosen yet."""
    made = []
    for name in READY[1:]:
        words, leases = _ready(cluster, name)
        made.append({"query": urlencode({"ready": name}), "words": words, "number": len(leases)})
    expired = find(cluster.store, LeaseFilter(phases=(Phase.EXPIRED,), limit=1)).total
    query = LeaseFilter(phases=(Phase.EXPIRED,)).query()
    made.append({"query": query, "words": "Expired", "number": expired})
    return made


def summary(cluster: WatchedCluster, choice: DeletionChoice, now: datetime) -> list[str]:
    """What is chosen, in sentences: worst first."""
    leases = choice.to_delete
    phases = Counter(one.phase for one in leases)
    said = [f"{', '.join(f'{phases[phase]:,} {phase}' for phase in Phase if phases[phase])}."]
    if silent := [one.phase_since for one in leases if one.phase is Phase.EXPIRED]:
        said.append(
            f"The longest expired one is so for {age((now - min(silent)).total_seconds())}."
        )
    namespaces = Counter(one.key.namespace for one in leases).most_common()
    if len(namespaces) == 1:
        said.append(f"All in the namespace {namespaces[0][0]}.")
    else:
        most = [f"{name} ({number:,})" for name, number in namespaces]
        said.append(f"In {counted(len(namespaces), 'namespace')}: {listed(most)}.")
    orphans = _without_node(cluster, leases)
    if orphans:
        said.append(f"{counted(orphans, 'is', 'are')} named after nodes that do not exist.")
    return said


def _ready(cluster: WatchedCluster, name: str) -> tuple[str, list[Tracked]]:
    if name == ABANDONED:
        unheld = cluster.store.select(tuple(Kind), (Phase.VACANT, Phase.EXPIRED))
        return "Abandoned", [one for one in unheld if one.abandoned]
    keys = _nodes_of(cluster).missing(cluster.store)
    found = (cluster.store.get(key) for key in keys)
    return "Heartbeats of nodes that do not exist", [one for one in found if one is not None]


def _without_node(cluster: WatchedCluster, leases: Iterable[Tracked]) -> int:
    if not any(one.key.namespace == NODE_LEASES for one in leases):
        return 0
    missing = set(_nodes_of(cluster).missing(cluster.store))
    return sum(one.key in missing for one in leases)


def _nodes_of(cluster: WatchedCluster) -> NodeBook:
    return running_board().publisher.hubs[cluster.name].nodes


def _names(query: QueryDict) -> list[ObjectName]:
    names = []
    for text in query.getlist("lease"):
        namespace, slash, name = text.partition("/")
        if not (namespace and slash and name):
            raise BadFilter(f"lease cannot be {quoted(text)}: write namespace/name.")
        names.append(ObjectName(namespace, name))
    return names


def _again(cluster: WatchedCluster, number: str) -> list[ObjectName]:
    """The Leases of an earlier deletion that it did not delete and did not find gone."""
    row = None
    if number.isascii() and number.isdecimal() and len(number) < 10:
        row = Deletion.objects.filter(cluster=cluster.name, pk=int(number)).first()
    if row is None:
        raise BadFilter(f"again cannot be {quoted(number)}: name a deletion of this cluster.")
    return report.names_to_try_again(row)
