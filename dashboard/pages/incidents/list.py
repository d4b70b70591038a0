"""The list of incidents, as a page, JSON or CSV."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from django.http import HttpResponseBase
from django.views.decorators.http import require_safe
from msgspec.structs import replace

from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.lists.controls import Chip, ListLinks
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import (
    LARGEST_PAGE,
    LIMIT,
    BadFilter,
    ListFilter,
    Parameter,
    for_input,
    one_of,
    quoted,
    read_moment,
    true_or_false,
    words,
    write_moment,
)
from dashboard.pages.incidents.near_misses import near_miss_line, near_misses, none_near
from dashboard.parts.across import offered_namespaces
from dashboard.parts.cause_words import CAUSE_WORDS, CONFIDENCE_MEANINGS
from dashboard.parts.change_sentence import authors_of
from dashboard.parts.formatting import age, capitalized, counted, shortened, span_of, when
from dashboard.parts.incident_line import (
    CauseView,
    as_known,
    beside_lines,
    cause_view,
    incident_line,
    same_time_items,
)
from dashboard.parts.key_figures import Calm
from dashboard.parts.time_range import RANGES
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import HOLDER_CHANGES, ChangeType
from leases.domain.incident import Cause, Incident, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import ConnectionState
from leases.history import find_changes, outbox
from leases.history.find_changes import BadCursor
from leases.history.find_incidents import StoredIncident, count_incidents, cursor_of, find_incidents
from leases.history.indexed_search import HistoryFilter
from leases.history.watched_spans import unwatched_times, watched_since
from leases.wire.microtime import format_microtime, microtime_or_none

PAGE_SIZE = 50
# Unplanned: also what was planned and left a Lease without a holder for longer than its duration.
UNPLANNED, ALL = "unplanned", "all"
SHOW = ("", UNPLANNED, ALL)


class IncidentFilter(ListFilter, frozen=True, kw_only=True):
    """An empty field filters nothing. An incident matches if it went on at any time between
    `since` and `until`; `range` ends now. `going_on` is "true", "false" or "". `show` is one of
    SHOW. `before` is the cursor of a page.
    """

    PARAMETERS = {
        "causes": Parameter("cause", words, Cause),
        "namespace": Parameter("namespace"),
        "lease": Parameter("lease"),
        "holder": Parameter("holder"),
        "range": Parameter("range", one_of, ("", *RANGES)),
        "since": Parameter("from", read_moment),
        "until": Parameter("to", read_moment),
        "going_on": Parameter("going_on", true_or_false),
        "show": Parameter("show", one_of, SHOW),
        "limit": LIMIT,
        "before": Parameter("before"),
    }
    causes: tuple[Cause, ...] = ()
    namespace: str = ""
    lease: str = ""
    holder: str = ""
    range: str = ""
    since: datetime | None = None
    until: datetime | None = None
    going_on: str = ""
    show: str = ""
    limit: int = PAGE_SIZE
    before: str = ""

    @property
    def plain(self) -> bool:
        """Whether it asks for the newest incidents of all kinds."""
        return self.replace(limit=PAGE_SIZE) == type(self)()

    @property
    def planned(self) -> bool:
        """Whether it asks for what was planned and went well, too; a page does so by a cause."""
        return self.show == ALL or (not self.show and bool(self.causes))

    def check(self) -> None:
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise BadFilter("to must be later than from.", names=("from",))

    def first(self, now: datetime) -> datetime | None:
        """From when on an incident must have gone on, with the range applied."""
        if not self.range:
            return self.since
        return max(filter(None, (self.since, now - RANGES[self.range])))


RANGE_LABELS = {"": "All times"} | {
    name: f"Last {span_of(length)}" for name, length in RANGES.items()
}
MAX_SAID = 80  # characters of a value in a sentence
_STATES = {"": (True, False), "true": (True,), "false": (False,)}
Counts = Mapping[tuple[Cause, bool], int]  # of a cause, of those that go on or are over


class IncidentLinks(ListLinks):
    """The links of the list; another choice begins at the newest incident."""

    wanted: IncidentFilter

    def url(self, **changes: Any) -> str:
        return super().url(**{"before": "", **changes})

    def going_on(self, counts: Counts) -> list[Chip]:
        """All, those that go on, and those that are over, of the chosen causes."""
        causes = self.wanted.causes or tuple(Cause)
        on = sum(counts.get((cause, True), 0) for cause in causes)
        over = sum(counts.get((cause, False), 0) for cause in causes)
        choices = (("All", "", on + over), ("Going on", "true", on), ("Over", "false", over))
        return [
            Chip(value, label, self.url(going_on=value), value == self.wanted.going_on, number)
            for label, value, number in choices
        ]

    def planned(self, counts: Counts, every: Counts) -> list[Chip]:
        """What was unplanned, and all, of the chosen causes and state."""
        wanted = self.wanted
        return [
            Chip(value, label, self.url(show=value), wanted.planned is (value == ALL), number)
            for value, label, number in (
                (UNPLANNED, "Unplanned", self._number(counts)),
                (ALL, "All", self._number(every)),
            )
        ]

    def _number(self, counts: Counts) -> int:
        causes = self.wanted.causes or tuple(Cause)
        states = _STATES[self.wanted.going_on]
        return sum(counts.get((cause, state), 0) for cause in causes for state in states)

    def causes(self, counts: Counts) -> list[Chip]:
        """The causes that there are, any of which may be on."""
        wanted = self.wanted.causes
        states = _STATES[self.wanted.going_on]
        numbers = {c: sum(counts.get((c, state), 0) for state in states) for c in Cause}
        every = Chip("", "All causes", self.url(causes=()), not wanted, sum(numbers.values()))
        return [every, *(self._cause(c, numbers[c]) for c in Cause if numbers[c] or c in wanted)]

    def _cause(self, cause: Cause, number: int) -> Chip:
        on = cause in self.wanted.causes
        others = tuple(one for one in self.wanted.causes if one is not cause)
        url = self.url(causes=others if on else (*others, cause))
        return Chip(cause.value, capitalized(CAUSE_WORDS[cause]), url, on, number)

    def exact(self) -> list[Chip]:
        """The whole names that a link asked for, each with the URL without it."""
        return [
            Chip(name, shortened(for_input(value), MAX_SAID), self.url(**{name: ""}), on=True)
            for name in ("lease", "holder")
            if (value := getattr(self.wanted, name))
        ]


def incident_board(links: IncidentLinks, unplanned: Counts, every: Counts) -> dict[str, Any]:
    """Make the controls of the page; the counts are of what was unplanned, and of all."""
    wanted = links.wanted
    counts = every if wanted.planned else unplanned
    show = ALL if wanted.planned else UNPLANNED  # a program reads all by default
    going_on = links.going_on(counts)
    return {
        "namespace": wanted.namespace,
        "lease": wanted.lease,
        "holder": for_input(wanted.holder),
        "range": wanted.range,
        "ranges": list(RANGE_LABELS.items()),
        "since": write_moment(wanted.since),
        "until": write_moment(wanted.until),
        "going_on": going_on,
        "planned": links.planned(unplanned, every),
        "causes": links.causes(counts),
        "exact": links.exact(),
        "kept": links.kept("cause", "going_on", "show"),
        "total": next(chip.count for chip in going_on if chip.on),
        "says": _says(wanted),
        "newest_url": links.url() if wanted.before else "",
        "clear_url": links.path,
        "csv_url": links.url_as("csv", before="", show=show),
        "json_url": links.url_as("json", before="", show=show),
    }


def _says(wanted: IncidentFilter) -> str:
    """The filter in words, or ""."""
    words = {
        "cause is": " or ".join(CAUSE_WORDS[cause] for cause in wanted.causes),
        "namespace is": wanted.namespace,
        "Lease is": wanted.lease,
        "holder is": wanted.holder,
        "since": write_moment(wanted.since),
        "before": write_moment(wanted.until),
    }
    shown = {UNPLANNED: ["unplanned"], ALL: ["planned too"]}.get(wanted.show, [])
    said = [RANGE_LABELS[wanted.range]] if wanted.range else []
    said += [f"{what} {shortened(value, MAX_SAID)}" for what, value in words.items() if value]
    said += shown
    said += {"true": ["going on"], "false": ["over"]}.get(wanted.going_on, [])
    return capitalized(for_input(", ".join(said)))


_JUDGED = (*HOLDER_CHANGES, ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED)
_HOW = "An incident is opened when a Lease changes hands, runs out or is deleted."


def no_incident(watched: WatchedCluster, now: datetime) -> Calm:
    """`now` is our clock; what is known may be older."""
    connection = watched.store.connection
    is_live = connection.state is ConnectionState.LIVE
    first = watched_since(watched.name)
    began = first or (connection.since if is_live else None)  # history notes it seconds later
    if connection.state is ConnectionState.REFUSED:
        return Calm("No access", connection.detail, "i-unplug")
    if began is None or not watched.synced:
        usual = "There is no connection to the cluster yet, so nothing is known."
        return Calm("Not watched yet", connection.detail or usual, "i-unplug")
    if not is_live:
        as_of = when(watched.as_of(now), now)
        text = f"Nobody watches since then. {connection.detail}".strip()
        return Calm(f"No incident up to {as_of}", text, "i-unplug")
    earlier = HistoryFilter(change=tuple(word.value for word in _JUDGED))
    if find_changes.find(watched.name, earlier, limit=1).changes:
        text = "Changes that an earlier version of Leaseboard stored have no cause."
        return Calm("No incident is known", f"{text} {_HOW}", "i-clock")
    unseen_times = unwatched_times(watched.name, since=began, until=now, now=now) if first else ()
    lost = sum(one.seconds for one in unseen_times)
    elections = sum(watched.store.counts().get(Kind.ELECTION, {}).values())
    if not elections:
        return Calm("No incident yet", f"No Lease here is an election. {_HOW}", "i-clock")
    unseen = f", but not for {age(lost)} of that time" if lost >= 1 else " without a break"
    text = f"{counted(elections, 'election')} watched{unseen}. {_HOW}"
    title = f"No incident since the watch began at {when(began, now)}"
    return Calm(title, text, *(("i-clock", "") if lost >= 1 else ("st-held", "is-held")))


FIELDS = (
    "id", "cluster", "cause", "confidence", "sentence", "began", "ended", "leases", "hosts",
    "writer", "worst_gap_seconds", "changes", "evidence", "settled", "planned", "overran",
    "lease_count", "same_time_as",
)  # fmt: skip


def incident_item(incident: Incident, changes: int) -> dict[str, Any]:
    """One incident in the order of FIELDS, but for those at the same time; `changes` is how many it
    has.
    """
    return {
        "id": incident.id,
        "cluster": incident.cluster,
        "cause": incident.cause.value,
        "confidence": incident.confidence.value,
        "sentence": incident.sentence,
        "began": format_microtime(incident.began),
        "ended": microtime_or_none(incident.ended),
        "leases": [_lease_item(key) for key in incident.leases],
        "hosts": list(incident.hosts),
        "writer": incident.writer,
        "worst_gap_seconds": incident.worst_gap_seconds,
        "changes": changes,
        "evidence": [
            {"sentence": one.sentence, "source": one.source.value} for one in incident.evidence
        ],
        "settled": incident.settled,
        "planned": incident.planned,
        "overran": incident.standing is Standing.OVERRAN,
        "lease_count": incident.lease_count,  # more than `leases` lists where they are very many
    }


SameTime = Sequence[dict[str, str]]


def incident_cells(incident: Incident, changes: int, same_time: SameTime = ()) -> dict[str, Any]:
    """The same for CSV: lists are separated by spaces, evidence by lines."""
    return incident_item(incident, changes) | {
        "same_time_as": " ".join(f"{one['cluster']}/{one['id']}" for one in same_time),
        "leases": " ".join(map(str, incident.leases)),
        "hosts": " ".join(incident.hosts),
        "evidence": " | ".join(f"{one.source.value}: {one.sentence}" for one in incident.evidence),
    }


def file_name(incident: Incident) -> str:
    """Such as `prod-incident-20261120T031231Z-node_down`; any name of a cluster is safe."""
    cluster = re.sub(r"[^A-Za-z0-9._]+", "-", incident.cluster)[:40].strip("-.")
    return f"{cluster}-incident-{incident.began:%Y%m%dT%H%M%SZ}-{incident.cause.value}"


def _lease_item(key: ObjectName) -> dict[str, str]:
    return {"namespace": key.namespace, "name": key.name}


NEAREST = 5  # near misses beside the list


def confidences() -> list[tuple[CauseView, str]]:
    """How sure a cause is, with what that means."""
    return [(cause_view(Cause.UNKNOWN, one), said) for one, said in CONFIDENCE_MEANINGS.items()]


class IncidentList(List[IncidentFilter, StoredIncident]):
    """Those that go on first, then the newest; JSON and CSV are the newest first."""

    name = "incidents"
    reads = IncidentFilter
    templates = ("incidents/index.html", "incidents/_rows.html")
    files = ("csv",)
    fields = FIELDS
    shows_now = True
    forms_ask_files = True
    _same_time: Mapping[str, SameTime] = MappingProxyType({})  # for programs, by incident

    @property
    def links(self) -> IncidentLinks:
        return IncidentLinks(self.request.path, self.wanted)

    @cached_property
    def clusters(self) -> Sequence[WatchedCluster]:
        """Those whose incidents are wanted."""
        return (self.request.cluster,)

    @property
    def _names(self) -> list[str]:
        return [one.name for one in self.clusters]

    def find(self) -> FoundRows[StoredIncident]:
        """JSON is one list; the page begins with the incidents that go on."""
        self._show_programs_all()
        wanted, one_list = self.wanted, self.wanted.going_on or self.answer_as == "json"
        scope = self._scope()
        unplanned = count_incidents(self._names, **scope, planned=False)
        board = incident_board(self.links, unplanned, count_incidents(self._names, **scope))
        found, older = self._find(wanted, self._state if one_list else False)
        if not one_list and not wanted.before:
            found = [*self._find(wanted, going_on=True)[0], *found]
        if self.answer_as == "json":
            self._same_time = same_time_items([one.incident for one in found])
        return FoundRows(found, board["total"], older=older, more=board)

    def every(self) -> Iterator[StoredIncident]:
        """All that match, newest first."""
        self._show_programs_all()
        at = self.wanted.replace(limit=LARGEST_PAGE, before="")
        while True:
            page, older = self._find(at, self._state)
            self._same_time = same_time_items([one.incident for one in page])
            yield from page
            if not older:
                return
            at = at.replace(before=older)

    def file_name(self) -> str:
        return f"{self.request.cluster.name}-incidents-{self.now:%Y%m%dT%H%M%SZ}"

    def item(self, row: StoredIncident) -> dict[str, Any]:
        same_time = self._same_time.get(row.incident.id, [])
        return incident_item(row.incident, row.changes) | {"same_time_as": same_time}

    def cells(self, row: StoredIncident) -> dict[str, Any]:
        return incident_cells(row.incident, row.changes, self._same_time.get(row.incident.id, ()))

    def next_url(self, found: FoundRows[StoredIncident]) -> str | None:
        url = self.links.url_as("json", before=found.older) if found.older else None
        return url and self.request.build_absolute_uri(url)

    def page(self, found: FoundRows[StoredIncident]) -> dict[str, Any]:
        of = [one.incident for one in found.rows]
        care = outbox.care(of)
        authors = authors_of(of, self.request.user)
        beside = beside_lines(of, self.now)
        as_of = {one.name: one.as_of(self.now) for one in self.clusters}
        return {
            "board": found.more,
            "lines": [
                (
                    incident_line(one, as_of[one.cluster], care),
                    authors.get(one.id),
                    beside.get(one.id, ()),
                )
                for one in of
            ],
            "older_url": self.links.url(before=found.older) if found.older else "",
            "calm": None if found.rows else self._calm(found.more),
            "plain": self.wanted.plain,
            **self._beside(),
        }

    def refused(self) -> dict[str, Any]:
        """The controls with what was typed."""
        asked = self.reads.typed(self.request.GET)
        kept = {name: asked[name] for name in ("namespace", "lease", "holder", "range")}
        ends = {"since": asked["from"], "until": asked["to"]}
        return {"board": incident_board(self.links, {}, {}) | kept | ends, **self._beside()}

    def _calm(self, board: dict[str, Any]) -> Calm:
        """Why the list is empty."""
        planned = board["planned"][-1].count
        if not planned:
            return self._no_incident()
        text = f"{counted(planned, 'incident')} went as planned. Choose All to see what happened."
        return Calm("No unplanned incident", text, "st-held", "is-held")

    def _no_incident(self) -> Calm:
        return no_incident(self.request.cluster, self.now)

    def _beside(self) -> dict[str, Any]:
        """What does not depend on the filter."""
        cluster = self.request.cluster
        misses = near_misses(cluster, self.now)
        return {
            "misses": [near_miss_line(cluster.name, one, self.now) for one in misses[:NEAREST]],
            "more_misses": max(0, len(misses) - NEAREST),
            "none_near": none_near(cluster, self.now),
            "confidences": confidences(),
            "namespaces": offered_namespaces(self.clusters),
        }

    def _show_programs_all(self) -> None:
        """A page shows what was unplanned by default; JSON and CSV have all."""
        if self.answer_as and self.answer_as != "html" and not self.wanted.show:
            self.wanted = self.wanted.replace(show=ALL)

    @property
    def _state(self) -> bool | None:
        """Those that go on, those that are over, or both."""
        return self.wanted.going_on == "true" if self.wanted.going_on else None

    def _scope(self) -> dict[str, Any]:
        """The filter without its causes and states, which the counts tell apart."""
        return {
            "namespace": self.wanted.namespace or None,
            "lease": self.wanted.lease or None,
            "holder": self.wanted.holder or None,
            "since": self.wanted.first(self.now),
            "until": self.wanted.until,
        }

    def _find(
        self, wanted: IncidentFilter, going_on: bool | None
    ) -> tuple[list[StoredIncident], str]:
        """A page of incidents, newest first, and the cursor of the next page. Raises BadFilter."""
        try:
            found = find_incidents(
                self._names,
                causes=wanted.causes,
                **self._scope(),
                going_on=going_on,
                planned=wanted.planned,
                limit=wanted.limit + 1,
                before=wanted.before or None,
            )
        except BadCursor as error:
            raise BadFilter(
                f"before cannot be {quoted(wanted.before)}: it is not a page of these incidents. "
                "Start again without it."
            ) from error
        page = found[: wanted.limit]
        known = {
            one.id: one
            for cluster in self.clusters
            for one in as_known(
                (row.incident for row in page if row.incident.cluster == cluster.name),
                cluster.as_of(self.now),
            )
        }
        page = [replace(row, incident=known[row.incident.id]) for row in page]
        return page, cursor_of(page[-1]) if len(found) > len(page) else ""


@require_safe
@viewer_required
def incidents(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """The list as a page, JSON, or all of it as CSV."""
    return IncidentList(request).answer()
