"""One field that finds Leases, holders, namespaces, pages and actions, also while one types.

The names of a cluster are one text each, which C searches in milliseconds. The text is made once,
then grows with what the feed reports; nothing walks all Leases for a keystroke. It keeps the names
of deleted Leases; history says of those that are found whether it knows them. It keeps those of
former holders too.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import msgspec
from django.http import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.access import roles
from dashboard.access.api_tokens import TokenPerson
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.feed import ClusterFeed
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import LIMIT, PAGE, ListFilter, Parameter
from dashboard.parts.formatting import when
from dashboard.parts.holdings import KINDS, heartbeat_of, host_of
from dashboard.parts.lease_row import UNKNOWN, lease_url, state_of
from dashboard.parts.names import holder_view, shown_holder
from dashboard.parts.page_links import holder_page
from dashboard.parts.write_access import known_access
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import ChangeType
from leases.domain.figures import SEVERITY
from leases.domain.kind import NODE_LEASES, Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import PastPhase
from leases.history.states_as_of import changes_before, newest_former_holders, newest_gone
from leases.tracking.tracked_lease import Tracked

SHOWN = {"lease": 8, "holder": 4, "namespace": 4, "page": 4, "action": 4}
TITLES = {
    "lease": "Leases", "holder": "Holders", "namespace": "Namespaces", "page": "Pages",
    "action": "Actions",
}  # fmt: skip
EXACT, BEGINS, BEGINS_WORD, INSIDE, BESIDE = range(5)  # where a text was found; the best first
MAX_LINES = 300  # that are compared for one word; of more, those that begin with it come first
MAX_LINES_OF_WORDS = 1000  # with several words, of which most lines have only one
MAX_WORDS = 4
MAX_ADDED = 1000  # names; then the text is made again
MAX_GONE = 2000  # deletions, and ends of terms, of each kind whose names are found
COST = 10.0  # it is not made again for so many times as long as that took


class FoundLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the answer; `rank` says where the text was found, `phase` is that of a Lease."""

    group: str
    label: str
    detail: str = ""
    url: str
    cluster: str = ""
    phase: str = ""
    rank: int = INSIDE

    @property
    def parts(self) -> tuple[str, str]:
        """The namespace with its slash, and the name."""
        namespace, slash, name = self.label.rpartition("/") if self.phase else ("", "", self.label)
        return namespace + slash, name


class SearchFilter(ListFilter, frozen=True, kw_only=True):
    """`lease` is the namespace/name that an open page is about: its actions come first."""

    PARAMETERS = {
        "text": Parameter("q"),
        "lease": Parameter("lease"),
        "page": PAGE,
        "limit": LIMIT,
    }
    text: str = ""
    lease: str = ""

    @property
    def words(self) -> list[str]:
        return self.text.lower().split()[:MAX_WORDS]


def rank_of(line: str, place: int, text: str) -> int:
    """How well a line is found by a text at `place`: the name counts more than the namespace."""
    name = line.find("/") + 1
    if place == name or (place == 0 and "/" in text):
        return EXACT if len(line) == place + len(text) else BEGINS
    if place > name:
        return BEGINS_WORD if line[place - 1] in "-._" else INSIDE
    return BESIDE


class NameText:
    """Names, a line each; `mark` stands before what counts as the name. Values in, values out."""

    def __init__(self, names: Iterable[str] = (), *, mark: str = "/") -> None:
        self.text, self._mark = "\n", mark
        self.add(names)

    def add(self, names: Iterable[str]) -> None:
        self.text += "".join([f"{name}\n" for name in names])

    def find(self, words: Sequence[str]) -> dict[str, int]:
        """Some lines that have all words, with the rank of a word: all, where they are not many."""
        found: dict[str, int] = {}
        most = MAX_LINES if len(words) == 1 else MAX_LINES_OF_WORDS
        for word in sorted(words, key=len, reverse=True):
            for before, after in (("", ""), (self._mark, ""), (self._mark, "\n")):
                seen = 0
                for line, place in islice(self._lines(before + word + after), most):
                    seen += 1
                    if all(other in line for other in words):
                        rank = EXACT if after else rank_of(line, place + len(before), word)
                        found[line] = min(rank, found.get(line, BESIDE))
                if seen < most and not before:
                    return found  # these were all
                if seen < most:
                    break
        return found

    def _lines(self, pattern: str) -> Iterator[tuple[str, int]]:
        """Each line with the pattern, and the place of the pattern in it."""
        at = self.text.find(pattern)
        while at >= 0:
            begin = self.text.rfind("\n", 0, at + (pattern[0] == "\n")) + 1
            end = self.text.find("\n", begin)
            yield self.text[begin:end], at - begin
            at = self.text.find(pattern, end)


class ClusterNames:
    """The names of one cluster's Leases and holders. Any thread may ask: one that catches up while
    another does adds a name twice at worst."""

    def __init__(self, feed: ClusterFeed) -> None:
        self._feed, self._number, self._until = feed, -1, 0.0
        self.leases, self.holders = NameText(), NameText(mark="\n")
        self.identities: dict[str, str] = {}  # the host of each line of holders, as it is written
        self.former: set[str] = set()  # the lines of those that hold nothing now
        self._known = self._added = 0
        self._outdated = True

    def catch_up(self, leases: int) -> None:
        """Add what came since. `leases` is how many the cluster has."""
        number, moves = self._feed.moves.number, None
        if self._number >= 0:
            moves = self._feed.moves.since(f"{self._number}-0", None)
        for move in moves or ():
            self._add(move.keys or (), move.created)
        self._number = number
        lost = moves is None or any(move.keys is None for move in moves)
        self._outdated |= lost or leases > self._known or self._added > MAX_ADDED
        if self._outdated and time.monotonic() >= self._until:
            self._make()

    def _make(self) -> None:
        """Walk all Leases once. Those of nodes come last: they are most, and rarely looked for."""
        begun = time.monotonic()
        every = self._feed.store.snapshot()
        keys = [one.lasting.key for one in every]
        names = [f"{key.namespace}/{key.name}" for key in keys if key.namespace != NODE_LEASES]
        names += [f"{NODE_LEASES}/{key.name}" for key in keys if key.namespace == NODE_LEASES]
        there = set(names)
        gone = [str(key) for key in newest_gone(self._feed.store.cluster, MAX_GONE)]
        self.identities = {}
        for one in [one for one in every if one.lasting.kind is not Kind.HEARTBEAT]:
            self._hold(one)
        self._remember()
        self.leases = NameText([*names, *(name for name in gone if name not in there)])
        self.holders = NameText(self.identities, mark="\n")
        self._known, self._added, self._outdated = len(names), 0, False
        ended = time.monotonic()
        self._until = ended + COST * (ended - begun)

    def _add(self, keys: Iterable[ObjectName], created: Iterable[ObjectName]) -> None:
        before = len(self.identities)
        for key in (*keys, *created):
            if (one := self._feed.store.get(key)) is not None:
                self._hold(one)
        self.holders.add(list(self.identities)[before:])
        new = [str(key) for key in created]
        self.leases.add(new)
        self._known, self._added = self._known + len(new), self._added + len(new)

    def _hold(self, one: Tracked) -> None:
        """Note the host of its holder; a node's own heartbeat is found as a Lease."""
        lasting = one.lasting
        identity = lasting.lease.spec.holder_identity
        if identity and lasting.kind is not Kind.HEARTBEAT:
            self.former.discard(self._note(identity))

    def _remember(self) -> None:
        """Note the hosts of holders that history alone knows."""
        there = set(self.identities)
        former = newest_former_holders(self._feed.store.cluster, KINDS, MAX_GONE)
        self.former = {self._note(identity) for identity in former} - there

    def _note(self, identity: str) -> str:
        host = host_of(identity)
        line = " ".join(host.lower().split())
        self.identities.setdefault(line, host)
        return line


_names: WeakKeyDictionary[ClusterFeed, ClusterNames] = WeakKeyDictionary()


def _names_of(cluster: WatchedCluster) -> ClusterNames:
    feed = running_board().feeds[cluster.name]
    names = _names.setdefault(feed, ClusterNames(feed))
    names.catch_up(cluster.lease_count)
    return names


Line = tuple[str, str, str]  # its label, its URL, and other words that find it
Place = tuple[str, str, str | None, str]  # a route, its label, what it takes, and other words
# The pages of a cluster and those of the whole board, with what reading them takes, and with other
# words by which one looks for them.
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
    ("home", "All clusters", None, "home"),
    ("audit", "Audit trail", roles.READ_TRAIL, "writes who edited"),
    ("api", "JSON for programs", None, "api openapi"),
    ("api_tokens", "API tokens", None, "programs"),
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
MOST_TYPED = 2  # Leases for which each action is offered
FEWEST_LETTERS = 3  # of a verb that is typed


class Search(List[SearchFilter, FoundLine]):
    """What a text finds: in the cluster of the page first, then in the others."""

    name = "search"
    reads = SearchFilter
    templates = ("search/index.html", "search/_found.html")
    shows_now = True

    def find(self) -> FoundRows[FoundLine]:
        here, every = self.request.cluster, running_board().clusters.values()
        others = [one for one in every if one is not here]
        names = {one: _names_of(one) for one in (here, *others)}  # ready before somebody types
        found = self._named("page", self._pages(others))
        found += self._named("action", self._actions(names[here]), here.name)
        if self.wanted.words:
            for cluster, known in names.items():
                lines = known.leases.find(self.wanted.words)
                found += self._leases(cluster, lines)
                found += self._deleted(cluster, lines)
                found += self._holders(cluster, known, lines)
                found += self._named("namespace", _namespaces(cluster), cluster.name)
        return self.cut(list(self._best(found)))

    def _best(self, found: Sequence[FoundLine]) -> Iterator[FoundLine]:
        """Some of each group, those of this cluster first; the group with the best line first."""
        here, typed = self.request.cluster.name, bool(self.wanted.words)
        of_groups = {group: [one for one in found if one.group == group] for group in TITLES}

        def stands(group: str) -> tuple[bool, int]:
            about = group == "action" and not typed and bool(self.wanted.lease)
            return not about, min(one.rank for one in of_groups[group])

        for group in sorted(filter(of_groups.get, TITLES), key=stands):
            most = SHOWN[group] * (1 if typed else 4)
            some = sorted(of_groups[group], key=lambda one: one.rank)
            yield from [one for one in some if one.cluster in ("", here)][:most]
            yield from [one for one in some if one.cluster not in ("", here)][: most // 2]

    def page(self, found: FoundRows[FoundLine]) -> dict[str, Any]:
        groups: dict[str, list[FoundLine]] = {}
        for one in found.rows:
            groups.setdefault(one.group, []).append(one)
        path = reverse("leases", args=[self.request.cluster.name])
        every = f"{path}?{urlencode({'q': self.wanted.text})}"
        return {
            "text": self.wanted.text,
            "total": found.total,
            "groups": [(TITLES[group], some) for group, some in groups.items()],
            "hint": self._hint(found.rows),
            "leases_url": every if len(self.wanted.words) == 1 else "",
        }

    def _hint(self, found: Sequence[FoundLine]) -> str:
        """Say what to type after the word of an action of a Lease, or ""."""
        words = self.wanted.words
        for _, label, _ in OF_LEASE if words and self._may(roles.EDIT) else ():
            offered = any(one.label.startswith(f"{label} ") and "/" in one.label for one in found)
            if not offered and all(_is_verb(word, label.lower().split()) for word in words):
                typed = self.wanted.text.strip()
                return f"{label} which Lease? Type a part of its name too: “{typed} sched”."
        return ""

    def refused(self) -> dict[str, Any]:
        return {"text": self.reads.typed(self.request.GET)["q"], "total": 0, "groups": []}

    def item(self, row: FoundLine) -> dict[str, Any]:
        return {
            "group": row.group,
            "label": row.label,
            "detail": row.detail,
            "url": self.request.build_absolute_uri(row.url),
            "cluster": row.cluster or None,
            "phase": row.phase or None,
        }

    def _leases(self, cluster: WatchedCluster, lines: Mapping[str, int]) -> list[FoundLine]:
        """The best of them; of equals those in trouble first, and node heartbeats last."""
        ranked = []
        for line, rank in lines.items():
            tracked = cluster.store.get(_key(line))
            if tracked is not None:
                beats = tracked.kind is Kind.HEARTBEAT
                ranked.append((rank, beats, SEVERITY[tracked.phase], tracked.key, tracked))
        best = sorted(ranked, key=lambda one: one[:4])[: SHOWN["lease"]]
        return [_lease(cluster.name, tracked, rank) for rank, _, _, _, tracked in best]

    def _deleted(self, cluster: WatchedCluster, lines: Mapping[str, int]) -> list[FoundLine]:
        """The best of those that are no more, as history tells."""
        best = sorted((rank, line) for line, rank in lines.items())
        gone = [(rank, key) for rank, line in best if not cluster.store.get(key := _key(line))]
        ranks = {key: rank for rank, key in gone[: SHOWN["lease"]]}
        known = changes_before(cluster.name, list(ranks), self.now)
        return [
            FoundLine(
                group="lease",
                label=str(key),
                detail=f"deleted {when(last.at, self.now)}",
                url=lease_url(cluster.name, key),
                cluster=cluster.name,
                phase=PastPhase.DELETED,
                rank=ranks[key],
            )
            for key, (*_, last) in known.items()
            if last.change is ChangeType.DELETED
        ]

    def _holders(
        self, cluster: WatchedCluster, names: ClusterNames, lines: Mapping[str, int]
    ) -> list[FoundLine]:
        """The best of them; of equals those first that hold something, and nodes last that may hold
        their own heartbeat alone.
        """
        found = {
            host: (rank, "holds nothing now" if line in names.former else "")
            for line, rank in names.holders.find(self.wanted.words).items()
            if (host := names.identities.get(line))
        }
        for line, rank in lines.items():
            namespace, host = line.split("/", 1)
            holds = host in found and not found[host][1]
            is_node = namespace == NODE_LEASES and rank < BESIDE and not holds
            if is_node and heartbeat_of(cluster.store, host):
                found[host] = rank, "node"
        best = sorted(found.items(), key=lambda one: (*one[1], one[0]))
        return [
            FoundLine(
                group="holder",
                label=shown_holder(host),
                detail=detail,
                url=holder_page(cluster.name, host),
                cluster=cluster.name,
                rank=rank,
            )
            for host, (rank, detail) in best[: SHOWN["holder"]]
        ]

    def _named(self, group: str, lines: Iterable[Line], cluster: str = "") -> list[FoundLine]:
        """The lines that have all words; all of them without words."""
        words, text = self.wanted.words, " ".join(self.wanted.words)
        found = []
        for label, url, also in lines:
            low = label.lower()
            if all(word in f"{low} {also}" for word in words):
                begins = (
                    BEGINS if low.startswith(text) else BEGINS_WORD if f" {text}" in low else INSIDE
                )
                rank = EXACT if low == text else begins if text in low else BESIDE
                found.append(
                    FoundLine(group=group, label=label, url=url, cluster=cluster, rank=rank)
                )
        return found

    def _pages(self, others: Iterable[WatchedCluster]) -> Iterator[Line]:
        """The pages that the person may read."""
        here = self.request.cluster.name
        for name, label, right, also in (*OF_CLUSTER, *OF_BOARD):
            by_program = name == "api_tokens" and isinstance(self.request.user, TokenPerson)
            if self._may(right) and not by_program:
                given = [here] if (name, label, right, also) in OF_CLUSTER else []
                yield label, reverse(name, args=given), also
        for one in others:
            yield f"Cluster {one.name}", reverse("overview", args=[one.name]), "overview"

    def _actions(self, names: ClusterNames) -> Iterator[Line]:
        """What the person may do, also to the Lease of the open page and to those typed."""
        cluster = self.request.cluster
        for route, label, verb in OF_LEASE if self._may(roles.EDIT) else ():
            verbs = label.lower().split()
            rest = [word for word in self.wanted.words if not _is_verb(word, verbs)]
            named = bool(rest) and len(rest) < len(self.wanted.words)
            lines = names.leases.find(rest) if named else {}
            typed = self._leases(cluster, lines)[:MOST_TYPED]
            for key in dict.fromkeys([self.wanted.lease, *(one.label for one in typed)]):
                namespace, _, name = key.partition("/")
                if self._may_write(namespace, verb) and cluster.store.get(
                    ObjectName(namespace, name)
                ):
                    yield f"{label} {key}", reverse(route, args=[cluster.name, namespace, name]), ""
        for route, label, right, also in ACTIONS:
            ours = route in OF_THIS_CLUSTER
            if self._may(right) and not (ours and cluster.read_only):
                yield label, reverse(route, args=[cluster.name] if ours else []), also

    def _may(self, right: str | None) -> bool:
        return right is None or self.request.user.has_perm(right)

    def _may_write(self, namespace: str, verb: str) -> bool:
        """Whether nothing is known against it: the form asks the cluster."""
        known = known_access(self.request.cluster, self.request.user, namespace, verb)
        return known is None or known.allowed is not False


def _is_verb(word: str, verbs: Iterable[str]) -> bool:
    return len(word) >= FEWEST_LETTERS and any(verb.startswith(word) for verb in verbs)


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


def _namespaces(cluster: WatchedCluster) -> Iterator[Line]:
    path = reverse("leases", args=[cluster.name])
    for name in cluster.store.namespaces():
        yield name, f"{path}?{urlencode({'namespace': name})}", ""


@require_safe
@viewer_required
def search(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """What was found as a page, as the list of the dialog, or as JSON."""
    return Search(request).answer()
