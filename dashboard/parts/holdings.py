"""Who holds what now, whose terms ended lately, and which holders a URL asks for."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Self
from weakref import WeakKeyDictionary

import msgspec
from django.http import QueryDict

from dashboard.lists.url_parameters import (
    LIMIT,
    PAGE,
    BadFilter,
    ListFilter,
    Parameter,
    one_of,
    sort_by,
    words,
)
from dashboard.parts.answer_cache import AnswerCache
from dashboard.parts.names import holder_in_path, is_digest
from dashboard.parts.time_range import RANGES
from leases.domain.cause.clue import contender
from leases.domain.cause.facts import Knowledge, PodFact, Question
from leases.domain.cause.scene import node_of_holder
from leases.domain.holder_identity import split_holder
from leases.domain.kind import NODE_LEASES, Kind, owner_node
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.history.states_as_of import EndedTerms, Past, ended_terms
from leases.kube.holder_pods import HolderPods, pod_questions
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

PAGE_SIZE = 25
USUAL_RANGE = "24h"
HOST, IDENTITY = GROUPS = ("host", "identity")
DOWN, NAME, TERMS = SORTS = ("down", "name", "terms")
NOW, PAST = HOLDS = ("now", "past")
# Without heartbeats: nodes that hold only their own are counted, not listed.
KINDS = (Kind.ELECTION, Kind.LOCK, Kind.IDENTITY, Kind.UNKNOWN)


def _kinds(query: QueryDict, name: str) -> tuple[Kind, ...]:
    kinds = words(query, name, Kind)
    if Kind.HEARTBEAT in kinds:
        choices = ", ".join(KINDS)
        raise BadFilter(f"{name} cannot be 'heartbeat' here: use one of {choices}, or nodes/.")
    return kinds


class HolderFilter(ListFilter, frozen=True, kw_only=True):
    """An empty field filters nothing. `text` is part of an identity or of the name of a held Lease;
    `holds` is "now" for holders of today, "past" for former ones.
    """

    PARAMETERS = {
        "text": Parameter("q"),
        "holds": Parameter("holds", one_of, ("", *HOLDS)),
        "kinds": Parameter("kind", _kinds),
        "group": Parameter("group", one_of, GROUPS),
        "range": Parameter("range", one_of, tuple(RANGES)),
        "sort": Parameter("sort", sort_by, SORTS),
        "limit": LIMIT,
        "page": PAGE,
    }
    text: str = ""
    kinds: tuple[Kind, ...] = ()
    group: str = HOST
    holds: str = ""
    range: str = USUAL_RANGE
    sort: str = DOWN
    limit: int = PAGE_SIZE

    @classmethod
    def read(cls, query: QueryDict, now: datetime | None = None, **usual: Any) -> Self:
        if query.get("at"):
            raise BadFilter(
                "at cannot be used here: this list is as of now. Timeline shows who held what."
            )
        return super().read(query, now, **usual)


MAX_KEPT = 512  # characters of an identity whose host is kept
MAX_NODES = 200  # that a search finds by their heartbeat alone
HELD = (Phase.HELD, Phase.LATE, Phase.UNTIMED)  # whose holder's death is felt


def is_held(tracked: Tracked) -> bool:
    """Whether the named holder holds it now: of an expired Lease it is only the last one."""
    return tracked.phase in HELD


class HolderSummary(msgspec.Struct, kw_only=True, gc=False):
    """A host or an identity: what names it, what it held before, and its own heartbeat."""

    name: str
    identities: dict[str, None]
    named_by: list[Tracked]
    ended: list[EndedTerms]
    heartbeat: Tracked | None = None
    # Of a node: the Leases that name Pods which are known to run there.
    pods_named_by: list[Tracked] = []
    pods_ended: list[EndedTerms] = []  # in the same Leases

    @property
    def all_named_by(self) -> tuple[Tracked, ...]:
        return (*self.named_by, *self.pods_named_by)

    @property
    def holds(self) -> list[Tracked]:
        return list(filter(is_held, self.named_by))

    @property
    def pods_hold(self) -> list[Tracked]:
        return list(filter(is_held, self.pods_named_by))

    @property
    def last_held(self) -> list[Tracked]:
        """The expired Leases that still name it or one of its Pods."""
        return [tracked for tracked in self.all_named_by if not is_held(tracked)]

    @property
    def takes_down(self) -> int:
        """How many Leases it holds now: they lose a valid holder with it."""
        return sum(map(is_held, self.all_named_by))

    @property
    def holds_now(self) -> bool:
        return any(map(is_held, self.all_named_by))

    @property
    def terms(self) -> int:
        ended = sum(ended.terms for ended in (*self.ended, *self.pods_ended))
        return ended + len(self.all_named_by)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Of all holders of the kinds wanted. `single`: Leases that had no other host in the range;
    `stranded`: those held by a node whose own heartbeat has expired; `holders`: without the nodes
    that are known for their Pods alone, which are read anew after each start.
    """

    held: int
    leases: int
    holders_now: int
    holders: int
    largest: HolderSummary | None
    single: int
    stranded: int
    nodes: int  # that hold nothing but their own heartbeat


class FoundHolders(msgspec.Struct, frozen=True):
    """One page of holders. `since` is where the range begins that history could be read for."""

    page: list[HolderSummary]
    number: int
    total: int
    figures: Figures
    since: datetime


KEPT = timedelta(minutes=5)  # a Pod is not asked for again sooner to learn where it runs


class PodsRead(msgspec.Struct, kw_only=True):
    """How far the Pods of `holders` are read: of `read` of them, the first one at `since`, and
    `on_nodes` of these are known to run on a Node.

    `problems`: each namespace where some are not, and why.
    """

    holders: int
    read: int = 0
    on_nodes: int = 0
    since: datetime | None = None
    to_ask: list[Question] = []
    problems: dict[str, str] = {}


class _Grouped:
    """The holders of some kinds, grouped in one way, over one range. Any thread may ask: what is
    made when it is asked for first is put in place whole, and made twice at worst.
    """

    def __init__(
        self, holders: dict[str, HolderSummary], figures: Figures, since: datetime
    ) -> None:
        self.by_name = holders
        self.figures = figures
        self.since = since
        self._sorted: dict[str, list[HolderSummary]] = {}
        self._texts: dict[str, str] | None = None

    def sorted(self, column: str) -> list[HolderSummary]:
        """All of them in the order of a column."""
        known = self._sorted.get(column)
        if known is None:
            known = self._sorted[column] = sorted(self.by_name.values(), key=_ORDERS[column])
        return known

    def contains(self, holder: HolderSummary, text: str) -> bool:
        """Whether a small-lettered text is part of an identity or of a Lease's name it holds."""
        texts = self._texts
        if texts is None:
            texts = self._texts = {one.name: _text(one) for one in self.by_name.values()}
        return text in texts[holder.name]


class Holdings:
    """The holders in one store. Any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._now: AnswerCache[tuple[Tracked, ...]] = AnswerCache()
        self._past: AnswerCache[Past] = AnswerCache()
        self._hosts: AnswerCache[dict[str, list[Tracked]]] = AnswerCache()
        self._groups: AnswerCache[_Grouped] = AnswerCache()
        self._nodes: AnswerCache[dict[str, list[Tracked]]] = AnswerCache()
        self._pods_read: AnswerCache[PodsRead] = AnswerCache()

    def find(self, wanted: HolderFilter, now: datetime, pods: HolderPods) -> FoundHolders:
        """The page that is wanted (the last one, if there are fewer)."""
        grouped = self._grouped(wanted, now, pods)
        some = [one for one in grouped.sorted(wanted.column) if _wants(one, wanted, grouped)]
        if wanted.text and not wanted.holds and not wanted.kinds:
            some += _nodes(self._store, grouped.by_name, wanted)
            some.sort(key=_ORDERS[wanted.column])
        if wanted.descending:
            some.reverse()
        number, place = wanted.page_of(len(some))
        return FoundHolders(some[place], number, len(some), grouped.figures, grouped.since)

    def one(
        self, named: str, wanted: HolderFilter, now: datetime, pods: HolderPods
    ) -> tuple[HolderSummary | None, int]:
        """The host that a path names (`holder_in_path`), and how many Leases are validly held."""
        grouped = self._grouped(wanted, now, pods)
        found = grouped.by_name.get(named)
        if found is None and is_digest(named):
            names = (name for name in grouped.by_name if holder_in_path(name) == named)
            found = grouped.by_name.get(next(names, ""))
        heartbeat = heartbeat_of(self._store, named)
        if found is None and heartbeat is not None:
            found = HolderSummary(
                name=named, identities={named: None}, named_by=[], ended=[], heartbeat=heartbeat
            )
        return found, grouped.figures.held

    def _grouped(self, wanted: HolderFilter, now: datetime, pods: HolderPods) -> _Grouped:
        choice = (frozenset(wanted.kinds), wanted.group, wanted.range, pods.version)
        return self._groups.get(choice, lambda: self._group(wanted, now, pods))

    def _group(self, wanted: HolderFilter, now: datetime, pods: HolderPods) -> _Grouped:
        since = now - RANGES[wanted.range]
        past = self._past.get(wanted.range, lambda: ended_terms(self._store.cluster, KINDS, since))
        held = self._held()
        holders = _grouped(held, past, wanted)
        ended: dict[tuple[ObjectName, str | None], list[EndedTerms]] = {}
        for one in past.ended:
            ended.setdefault((one.key, one.holder), []).append(one)
        for name, all_held in self._on_nodes(pods).items():
            mine = [one for one in all_held if one.kind in (wanted.kinds or KINDS)]
            if mine and name not in holders and wanted.group == HOST:
                holders[name] = HolderSummary(name=name, identities={}, named_by=[], ended=[])
            if mine and name in holders:
                holders[name].pods_named_by = mine
                holders[name].pods_ended = [
                    before for one in mine for before in ended.get((one.key, one.holder), ())
                ]
        for holder in holders.values():
            holder.heartbeat = heartbeat_of(self._store, holder.name)
        return _Grouped(holders, _figures(self._store, holders, held, past, wanted), past.since)

    def beside(self, tracked: Tracked, pods: HolderPods) -> list[Tracked]:
        """What else names the host of a Lease's holder, of a node also what names the Pods that
        are known to run there; its own heartbeat last.
        """
        host = _host_in(tracked) if tracked.holder else None
        if host is None:
            return []
        others = [*self.held_on(host), *self._on_nodes(pods).get(host, ())]
        heartbeat = heartbeat_of(self._store, host)
        found = [*others, heartbeat] if heartbeat is not None else others
        return [other for other in found if other.key != tracked.key]

    def held_on(self, host: str) -> list[Tracked]:
        """The Leases that name a host, without its heartbeat: it last held the expired ones."""
        return self._hosts.get("by host", self._by_host).get(host, [])

    def pods_read(self, pods: HolderPods, now: datetime) -> PodsRead:
        """How far the Pods of all holders that are no nodes are read."""
        return self._pods_read.get(pods.reads, lambda: self._read(pods, now))

    def _read(self, pods: HolderPods, now: datetime) -> PodsRead:
        questions = self._all_questions()
        found = PodsRead(holders=len(questions))
        for asked in questions:
            readings = [pods.reading(one) for one in asked]
            known = [one for one in readings if one is not None]
            if len(known) < len(readings) or any(now - one.at > KEPT for one in known):
                found.to_ask += asked
            problem = next((one.problem for one in known if one.problem), "")
            if problem:
                found.problems[asked[0].key.namespace] = problem
            elif len(known) == len(readings):
                found.read += 1
                since = min(one.at for one in known)
                found.since = min(since, found.since or since)
                found.on_nodes += any(
                    isinstance(fact, PodFact) and fact.node for one in known for fact in one.facts
                )
        return found

    def _on_nodes(self, pods: HolderPods) -> dict[str, list[Tracked]]:
        """What is held by Pods, by the node of the store that each is known to run on."""

        def found() -> dict[str, list[Tracked]]:
            by_node = _held_by_pods(self._held(), pods.known)
            return {name: held for name, held in by_node.items() if heartbeat_of(self._store, name)}

        return self._nodes.get(pods.version, found) if pods.version else {}

    def _all_questions(self) -> list[list[Question]]:
        asked = {
            (tracked.key.namespace, tracked.holder): pod_questions(tracked.key, tracked.holder)
            for tracked in self._held()
            if tracked.holder is not None
            and split_holder(tracked.holder).host is not None
            and heartbeat_of(self._store, _host_in(tracked)) is None
        }
        return list(asked.values())

    def _held(self) -> tuple[Tracked, ...]:
        """Every Lease that names a holder, but heartbeats."""
        select = self._store.select
        return self._now.get(
            "held", lambda: tuple(t for t in select(KINDS, tuple(Phase)) if t.holder is not None)
        )

    def _by_host(self) -> dict[str, list[Tracked]]:
        hosts: dict[str, list[Tracked]] = {}
        for tracked in self._held():
            hosts.setdefault(_host_in(tracked), []).append(tracked)
        return hosts


_holdings: WeakKeyDictionary[Store, Holdings] = WeakKeyDictionary()


def holdings_of(store: Store) -> Holdings:
    """The holders in a store: what was found out for one page serves the next."""
    return _holdings.setdefault(store, Holdings(store))


def host_of(identity: str) -> str:
    """The host in a holder's identity, or all of it where it names none."""
    return _host_of(identity) if len(identity) <= MAX_KEPT else _host_of.__wrapped__(identity)


def _host_in(tracked: Tracked) -> str:
    """The host of a Lease's holder; a Lease that a Node owns may have it behind another word."""
    identity, node = tracked.holder or "", owner_node(tracked.lasting.lease)
    return host_of(identity) if node is None else split_holder(identity, node).host or identity


@lru_cache(maxsize=2048)
def _host_of(identity: str) -> str:
    return split_holder(identity).host or identity


def heartbeat_of(store: Store, host: str) -> Tracked | None:
    """The heartbeat of a host, if it is a node."""
    known = store.get(ObjectName(NODE_LEASES, host))
    return known if known is not None and known.kind is Kind.HEARTBEAT else None


def _held_by_pods(held: Sequence[Tracked], known: Knowledge) -> dict[str, list[Tracked]]:
    found: dict[str, list[Tracked]] = {}
    for tracked in held:
        holder = contender(tracked.holder)
        if holder is None:
            continue
        node = node_of_holder(tracked.key, holder, known)
        if node and node != holder.host:
            found.setdefault(node, []).append(tracked)
    return found


def _grouped(held: Sequence[Tracked], past: Past, wanted: HolderFilter) -> dict[str, HolderSummary]:
    holders: dict[str, HolderSummary] = {}
    of = host_of if wanted.group == HOST else str

    def holder(identity: str) -> HolderSummary:
        name = of(identity)
        one = holders.get(name)
        if one is None:
            one = holders[name] = HolderSummary(name=name, identities={}, named_by=[], ended=[])
        one.identities[identity] = None
        return one

    kinds = wanted.kinds or KINDS
    for tracked in held:
        if tracked.kind in kinds and tracked.holder is not None:
            holder(tracked.holder).named_by.append(tracked)
    for ended in past.ended:
        if ended.kind in kinds:
            holder(ended.holder).ended.append(ended)
    return holders


def _figures(
    store: Store,
    holders: dict[str, HolderSummary],
    held: Sequence[Tracked],
    past: Past,
    wanted: HolderFilter,
) -> Figures:
    kinds = wanted.kinds or KINDS
    present = [holder for holder in holders.values() if holder.holds_now]
    valid = [tracked for tracked in held if tracked.kind in kinds and is_held(tracked)]
    others = {(ended.key, host_of(ended.holder)) for ended in past.ended}
    hosts = {(tracked.key, host_of(tracked.holder or "")) for tracked in valid}
    changed = {key for key, _ in others - hosts}
    heartbeats = sum(store.counts().get(Kind.HEARTBEAT, {}).values())
    return Figures(
        held=len(valid),
        leases=sum(sum(store.counts().get(kind, {}).values()) for kind in kinds),
        holders_now=sum(bool(holder.holds) for holder in present),
        holders=sum(bool(holder.named_by or holder.ended) for holder in holders.values()),
        largest=min(present, key=_ORDERS[DOWN], default=None),
        single=sum(tracked.key not in changed for tracked in valid),
        stranded=sum(h.takes_down for h in present if _dead(h)),
        nodes=max(0, heartbeats - sum(holder.heartbeat is not None for holder in present)),
    )


def _dead(holder: HolderSummary) -> bool:
    return holder.heartbeat is not None and holder.heartbeat.phase is Phase.EXPIRED


def _nodes(
    store: Store, known: Mapping[str, HolderSummary], wanted: HolderFilter
) -> list[HolderSummary]:
    """The nodes of a search that hold nothing but their own heartbeat."""
    text = wanted.text.lower()
    found: list[HolderSummary] = []
    for tracked in store.of_namespace(NODE_LEASES):
        name = tracked.key.name
        if text in name and tracked.kind is Kind.HEARTBEAT and name not in known:
            alone = HolderSummary(name=name, identities={name: None}, named_by=[], ended=[])
            alone.heartbeat = tracked
            found.append(alone)
            if len(found) == MAX_NODES:
                break
    return found


def _wants(holder: HolderSummary, wanted: HolderFilter, grouped: _Grouped) -> bool:
    if wanted.holds and holder.holds_now != (wanted.holds == NOW):
        return False
    return not wanted.text or grouped.contains(holder, wanted.text.lower())


def _text(holder: HolderSummary) -> str:
    names = (str(tracked.key) for tracked in holder.all_named_by)
    return "\n".join((holder.name, *holder.identities, *names)).lower()


_ORDERS: dict[str, Callable[[HolderSummary], tuple[object, ...]]] = {
    DOWN: lambda holder: (-holder.takes_down, -len(holder.named_by), -holder.terms, holder.name),
    NAME: lambda holder: (holder.name,),
    TERMS: lambda holder: (-holder.terms, holder.name),
}
