"""What a text finds in all clusters: the page, the list of the dialog, and JSON."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

import msgspec
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.access import roles
from dashboard.access.api_tokens import TokenPerson
from dashboard.access.guards import ClusterRequest, check_view, drawing, viewer_required
from dashboard.board import running_board
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.responses import unless_live
from dashboard.lists.url_parameters import LIMIT, PAGE, ListFilter, Parameter, is_true
from dashboard.pages.search.found import (
    ACTIONS,
    OF_BOARD,
    OF_CLUSTER,
    OF_LEASE,
    OF_THIS_CLUSTER,
    SHOWN,
    ClusterSearch,
    FoundLine,
    Place,
    SearchedText,
    incident_found,
)
from dashboard.pages.search.names import BEGINS, BEGINS_WORD, BESIDE, EXACT, INSIDE, names_of
from dashboard.parts.cluster_write_access import known_access
from dashboard.parts.formatting import when
from dashboard.parts.names import cluster_path
from dashboard.parts.page_links import all_clusters_url
from dashboard.parts.saved_view import says, views_called
from dashboard.watched_cluster import WatchedCluster
from leases.domain.lease import ObjectName
from leases.domain.terms import PastPhase
from leases.domain.watched_times import ConnectionState
from leases.history.find_incidents import incidents_called

TITLES = {
    "lease": "Leases", "holder": "Holders", "namespace": "Namespaces", "incident": "Incidents",
    "view": "Saved views", "page": "Pages", "action": "Actions",
}  # fmt: skip
MOST_TYPED = 2  # Leases for which each action is offered
FEWEST_LETTERS = 3  # of a verb that is typed
MOST_VIEWS = 40
MOST_ELSEWHERE = 30  # lines of other clusters than that of the page
WHOLE = EXACT - 1  # the rank of the one line that the text is the whole name of
INCIDENT_ID = re.compile("[0-9a-f]{16}")
Line = tuple[str, Callable[[], str], str]  # its label, its URL, and other words that find it
Sections = dict[str, dict[str, list[FoundLine]]]  # of clusters, by group


class SearchFilter(ListFilter, frozen=True, kw_only=True):
    """`lease` is the namespace/name that an open page is about: its actions come first. With `go`,
    a page leads to what the text is the whole name of.
    """

    PARAMETERS = {
        "text": Parameter("q"),
        "lease": Parameter("lease"),
        "go": Parameter("go", is_true),
        "page": PAGE,
        "limit": LIMIT,
    }
    text: str = ""
    lease: str = ""
    go: bool = False
    limit: int = 200


class Search(List[SearchFilter, FoundLine]):
    """What a text finds: in the cluster of the page first, then in the others."""

    name = "search"
    reads = SearchFilter
    templates = ("search/index.html", "search/_found.html")
    shows_now = True
    here: WatchedCluster | None
    asked: SearchedText
    left_out: Sequence[str] = ()  # clusters that have something too

    def find(self) -> FoundRows[FoundLine]:
        self.here = getattr(self.request, "cluster", None)
        board = running_board()
        watched = [one for name, one in board.clusters.items() if name in board.feeds]
        every = sorted(watched, key=lambda one: one.name)
        clusters = sorted(every, key=lambda one: one is not self.here)
        self.asked = SearchedText(self.wanted.text, self.now, len(clusters))
        names = {one: names_of(one) for one in clusters}  # ready before somebody types
        found: list[FoundLine] = []
        for cluster, known in names.items():
            if self.asked.words or cluster is self.here:
                found += self._lines_of(cluster, ClusterSearch(cluster, known, self.asked))
        found += self._board_lines(clusters)
        found += self._views()
        found += self._older_incidents(found, [one.name for one in clusters])
        return self.cut(list(self._best(_mark_whole(found, self.wanted.text, self._here_name))))

    @property
    def _here_name(self) -> str:
        return self.here.name if self.here else ""

    def _lines_of(self, cluster: WatchedCluster, search: ClusterSearch) -> list[FoundLine]:
        is_here = cluster is self.here
        shown = "" if is_here else cluster.name  # the pages of this cluster are those of the board
        found = self._named("page", self._places(OF_CLUSTER, [cluster.name]), shown)
        found += self._named("action", self._actions(cluster, search), cluster.name)
        if self.asked.words:
            found += search.all()
            namespaces = ((name, partial(str, url), "") for name, url in search.namespaces())
            found += self._named("namespace", namespaces, cluster.name)
        return found

    def _older_incidents(
        self, found: Iterable[FoundLine], clusters: Sequence[str]
    ) -> list[FoundLine]:
        """The incident of an id that is typed whole, and of which no text is kept."""
        text = self.wanted.text.lower()
        known = any(one.group == "incident" and one.rank == EXACT for one in found)
        if known or not INCIDENT_ID.fullmatch(text):
            return []
        older = incidents_called(text, clusters, len(clusters))
        return [incident_found(name, one, self.now, EXACT) for name, one in older]

    def _best(self, found: Sequence[FoundLine]) -> Iterator[FoundLine]:
        """Some of each group of each cluster; the group with the best line first."""
        typed = bool(self.asked.words)
        sections: Sections = {}
        for one in found:
            of_cluster = sections.setdefault(one.cluster or self._here_name, {})
            of_cluster.setdefault(one.group, []).append(one)

        def stands(groups: dict[str, list[FoundLine]], group: str) -> tuple[bool, int, int]:
            about = group == "action" and not typed and bool(self.wanted.lease)
            return not about, min(one.rank for one in groups[group]), [*TITLES].index(group)

        def place(section: str) -> tuple[bool, int, str]:
            best = min(one.rank for some in sections[section].values() for one in some)
            return self.here is None or section != self._here_name, best, section

        ordered = sorted(sections, key=place)
        elsewhere = 0
        for number, section in enumerate(ordered):
            groups = sections[section]
            best = [
                one
                for group in sorted(groups, key=partial(stands, groups))
                for one in _best_of(groups[group], self._most(group, section, sections))
            ]
            elsewhere += 0 if self.here and section == self._here_name else len(best)
            if elsewhere > MOST_ELSEWHERE:
                self.left_out = ordered[number:]
                return
            yield from best

    def _most(self, group: str, section: str, sections: Sections) -> int:
        """How many lines of a group are shown: of many clusters, a few of each."""
        most = SHOWN[group]
        if section == self._here_name:
            return most * (1 if self.asked.words else 4)
        many = sum(group in groups for groups in sections.values())
        return max(1, min(most // 2 if self.here else most, most * 2 // many))

    def page(self, found: FoundRows[FoundLine]) -> dict[str, Any]:
        here, text = self._here_name, {"q": self.wanted.text}
        sections: Sections = {}
        for one in found.rows:
            groups = sections.setdefault(one.cluster or here, {})
            groups.setdefault(one.group, []).append(one)
        every = f"{reverse('leases', args=[here])}?{urlencode(text)}" if here else ""
        return {
            "text": self.wanted.text,
            "total": found.total,
            "sections": [
                self._section(*one, headed=[*sections] != [here]) for one in sections.items()
            ],
            "left_out": [(name, _page_of(name, text)) for name in self.left_out],
            "hint": self._hint(found.rows),
            "leases_url": every if len(self.asked.words) == 1 else "",
        }

    def _section(
        self, name: str, groups: dict[str, list[FoundLine]], *, headed: bool
    ) -> dict[str, Any]:
        """A cluster with its groups; `since` says how old they are, if it is not live."""
        watched = running_board().clusters.get(name)
        told = watched.connection if watched is not None else None
        since = ""
        if told is not None and watched is not None and told.state is not ConnectionState.LIVE:
            read_at = watched.read_at(self.now)
            since = f"as of {when(read_at, self.now)}" if read_at else "not read yet"
        return {
            "title": (name or "All clusters") if headed else "",
            "url": _page_of(name, {"q": self.wanted.text}) if name != self._here_name else "",
            "since": since,
            "groups": [(TITLES[group], some) for group, some in groups.items()],
        }

    def _hint(self, found: Sequence[FoundLine]) -> str:
        """Say what to type after the word of an action of a Lease, or ""."""
        words = self.asked.words
        for _, label, _ in OF_LEASE if words and self._may(roles.EDIT) else ():
            offered = any(one.label.startswith(f"{label} ") and "/" in one.label for one in found)
            if not offered and all(_is_verb(word, label.lower().split()) for word in words):
                typed = self.wanted.text.strip()
                return f"{label} which Lease? Type a part of its name too: “{typed} sched”."
        return ""

    def refused(self) -> dict[str, Any]:
        return {"text": self.reads.typed(self.request.GET)["q"], "total": 0, "sections": []}

    def leads_to(self, found: FoundRows[FoundLine]) -> str:
        return next((one.url for one in found.rows if one.whole), "") if self.wanted.go else ""

    def item(self, row: FoundLine) -> dict[str, Any]:
        watched = running_board().clusters.get(row.cluster) if row.cluster else None
        outdated = {} if watched is None or watched is self.here else unless_live(watched, self.now)
        return {
            "group": row.group,
            "label": row.label,
            "detail": row.detail,
            "url": self.request.build_absolute_uri(row.url),
            "cluster": row.cluster or None,
            "phase": row.phase or None,
            "whole": row.whole,
        } | outdated

    def _named(self, group: str, lines: Iterable[Line], cluster: str = "") -> list[FoundLine]:
        """The lines that have all words; all of them without words."""
        words, text = self.asked.words, " ".join(self.asked.words)
        found = []
        for label, url, also in lines:
            low = label.lower()
            if all(word in f"{low} {also}" for word in words):
                begins = (
                    BEGINS if low.startswith(text) else BEGINS_WORD if f" {text}" in low else INSIDE
                )
                rank = EXACT if low == text else begins if text in low else BESIDE
                if rank == BESIDE and group == "action" and low.startswith(words[0]):
                    rank = BEGINS_WORD  # its verb, and a part of a name: nothing else is meant
                found.append(
                    FoundLine(group=group, label=label, url=url(), cluster=cluster, rank=rank)
                )
        return found

    def _board_lines(self, clusters: Iterable[WatchedCluster]) -> list[FoundLine]:
        """What belongs to no cluster: pages of the whole board, and the clusters themselves."""
        pages: list[Line] = [("All clusters", all_clusters_url, "home")]
        pages += self._places(OF_BOARD, [])
        for one in clusters:
            if one is not self.here:
                url = partial(reverse, "overview", args=[one.name])
                pages.append((f"Cluster {one.name}", url, "overview"))
        actions = self._places([one for one in ACTIONS if one[0] not in OF_THIS_CLUSTER], [])
        return self._named("page", pages) + self._named("action", actions, self._here_name)

    def _views(self) -> list[FoundLine]:
        """Saved ones, by their names."""
        views = {
            reverse("saved_view", args=[one.pk]): one
            for one in views_called(self.request.user, self.asked.words, MOST_VIEWS)
        }
        named = self._named(
            "view", ((one.name, partial(str, url), "") for url, one in views.items())
        )
        return [msgspec.structs.replace(one, detail=says(views[one.url])) for one in named]

    def _places(self, places: Iterable[Place], given: Sequence[str]) -> Iterator[Line]:
        """Those that the person may open."""
        for name, label, right, also in places:
            by_program = name == "api_tokens" and isinstance(self.request.user, TokenPerson)
            if self._may(right) and not by_program:
                yield label, partial(reverse, name, args=given), also

    def _actions(self, cluster: WatchedCluster, search: ClusterSearch) -> Iterator[Line]:
        """What the person may do there, also to the Lease of the open page and to those typed."""
        open_page = [self.wanted.lease] if cluster is self.here else []
        for route, label, verb in OF_LEASE if self._may(roles.EDIT) else ():
            verbs = label.lower().split()
            rest = [word for word in self.asked.words if not _is_verb(word, verbs)]
            named = bool(rest) and len(rest) < len(self.asked.words)
            typed = search.leases_called(rest, MOST_TYPED) if named else []
            for key in dict.fromkeys([*open_page, *(one.label for one in typed)]):
                namespace, _, name = key.partition("/")
                if self._may_write(cluster, namespace, verb) and cluster.store.get(
                    ObjectName(namespace, name)
                ):
                    url = partial(reverse, route, args=[cluster.name, namespace, name])
                    yield f"{label} {key}", url, ""
        if not cluster.read_only:
            ours = [one for one in ACTIONS if one[0] in OF_THIS_CLUSTER]
            yield from self._places(ours, [cluster.name])

    def _may(self, right: str | None) -> bool:
        return right is None or self.request.user.has_perm(right)

    def _may_write(self, cluster: WatchedCluster, namespace: str, verb: str) -> bool:
        """Whether nothing is known against it: the form asks the cluster."""
        known = known_access(cluster, self.request.user, namespace, verb)
        return known is None or known.allowed is not False


class SearchAll(Search):
    """What a text finds in any cluster, asked from a page that is about none."""

    name = "search_all"
    shows_now = False


def _mark_whole(found: Sequence[FoundLine], text: str, here: str) -> list[FoundLine]:
    """Mark the one line that the text is the whole name of, if there is one alone: a Lease, else a
    holder, else an incident. A Lease that is there counts more than a deleted one, and the cluster
    of the page more than others, except for a name without its namespace.
    """
    low = text.lower()
    leases = [one for one in found if one.group == "lease"]
    leases = [one for one in leases if low in (one.label, one.parts[1])]
    leases = [one for one in leases if one.phase != PastPhase.DELETED] or leases
    exact = [one for one in found if one.rank == EXACT]
    holders = [one for one in exact if one.group == "holder"]
    incidents = [one for one in exact if one.group == "incident"]
    called = leases or holders or incidents
    if not (leases and "/" not in text):
        called = [one for one in called if one.cluster == here] or called
    if len(called) != 1:
        return list(found)
    marked = msgspec.structs.replace(called[0], whole=True, rank=WHOLE)
    return [marked if one is called[0] else one for one in found]


def _best_of(found: Iterable[FoundLine], most: int) -> list[FoundLine]:
    return sorted(found, key=lambda one: one.rank)[:most]


def _page_of(cluster: str, query: dict[str, str]) -> str:
    return f"{cluster_path('search', cluster)}?{urlencode(query)}" if cluster else ""


def _is_verb(word: str, verbs: Iterable[str]) -> bool:
    return len(word) >= FEWEST_LETTERS and any(verb.startswith(word) for verb in verbs)


@require_safe
@viewer_required
def search(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """What was found as a page, as the list of the dialog, or as JSON."""
    return Search(request).answer()


@require_safe
def search_all(request: HttpRequest) -> HttpResponseBase:
    """The same for a page that is about no cluster; where there is one alone, it is the one."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    clusters = running_board().clusters
    if len(clusters) == 1 and request.GET.get("format") != "json":
        only = cluster_path("search", next(iter(clusters)))
        return redirect(f"{only}?{request.GET.urlencode()}")
    with drawing(request):
        return SearchAll(cast("ClusterRequest", request)).answer()
