"""The list of Leases, now or as of an instant: filter, sort, page.

Candidates are the Leases of today and those deleted since; history says how each stood. Up to
MAX_MATCHES candidates are read together, so that they can be filtered by phase and holder and
sorted. Of more, only one page is read, in the order of names.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.board import running_board
from dashboard.feed import Flappers
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import (
    FILTERS,
    BadFilter,
    Parameter,
    passed,
    read_moment,
    typed,
    write_moment,
)
from dashboard.parts import lease_filter
from dashboard.parts.as_of import blind_at, why_blind
from dashboard.parts.cluster_write_access import ON_LIST, known_rights
from dashboard.parts.flapping import flappers_of
from dashboard.parts.formatting import shortened, thousands, when
from dashboard.parts.key_figures import unwatched_by_hour
from dashboard.parts.lease_controls import LeaseLinks, as_far_as, board
from dashboard.parts.lease_item import item_as_of, lease_item
from dashboard.parts.lease_row import ABANDONED, FREE, MAY_BE_VACANT, row_view, time_since
from dashboard.parts.names import holder_view, is_held_by, lease_url, shown_name
from leases.domain.figures import EXCUSED_SEVERITY, PAST_SEVERITY
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import PastPhase
from leases.domain.watched_times import UnwatchedTime
from leases.history.activity import HOUR, Activity
from leases.history.states_as_of import State, gone_since, states_at
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

MAX_MATCHES = 5000


class FoundAsOf(msgspec.Struct, frozen=True, kw_only=True):
    page: list[State]
    number: int
    total: int  # matches; without `whole`, candidates
    whole: bool  # all candidates were read
    absent: int = 0  # matching Leases of today that did not exist then; only if `whole`
    phases: dict[PastPhase, int]  # counts before the filter by phase; only if `whole`
    abandoned: int = 0  # before the filter by it; only if `whole`


def find_as_of(store: Store, wanted: lease_filter.LeaseFilter, at: datetime) -> FoundAsOf:
    """Find one page. Raises BadFilter for a filter that would have to read too many Leases."""
    if wanted.labels:
        raise BadFilter("labels cannot be asked of the past: history keeps none. Leave them out.")
    if wanted.flapping:
        raise BadFilter(
            "flapping cannot be asked of the past: sort the timeline of that time by changes."
        )
    names = _names(store, wanted, at)
    if len(names) > MAX_MATCHES:
        return _one_page(store, wanted, names, at)
    after = store.abandoned_after
    every = states_at(store.cluster, names, at, abandoned_after=after)
    states = [state for state in every if _matches(state, wanted)]
    abandoned = sum(state.abandoned for state in states)
    if wanted.abandoned:
        states = [one for one in states if one.abandoned is (wanted.abandoned == "true")]
    phases = Counter(state.standing.phase for state in states)
    absent = _absent(store, wanted, {state.key for state in states}, at)
    if wanted.phases:
        states = [state for state in states if state.standing.phase.value in wanted.phases]
    states.sort(key=_ORDERS.get(wanted.column, _by_name), reverse=wanted.descending)
    number, place = wanted.page_of(len(states))
    return FoundAsOf(
        page=states[place],
        number=number,
        total=len(states),
        whole=True,
        phases=phases,
        absent=absent,
        abandoned=abandoned,
    )


def _absent(
    store: Store, wanted: lease_filter.LeaseFilter, there: Collection[ObjectName], at: datetime
) -> int:
    """Count the Leases of today that match by name and kind and were created later."""
    if wanted.holder:
        return 0  # their holder at that time is unknown
    text = wanted.text.lower()
    return sum(
        lease.key not in there
        and text in str(lease.key)
        and (not wanted.namespaces or lease.key.namespace in wanted.namespaces)
        and (lease.lasting.lease.metadata.creation_timestamp or at) > at
        for lease in store.select(wanted.kinds or tuple(Kind), tuple(Phase))
    )


def _one_page(
    store: Store, wanted: lease_filter.LeaseFilter, names: Sequence[ObjectName], at: datetime
) -> FoundAsOf:
    if wanted.phases or wanted.holder or wanted.text or wanted.abandoned:
        raise BadFilter(
            f"{len(names):,} Leases are too many to search at an instant: choose a kind or a "
            f"namespace that leaves {MAX_MATCHES:,} or fewer."
        )
    number, place = wanted.page_of(len(names))
    page = states_at(store.cluster, names[place], at, abandoned_after=store.abandoned_after)
    return FoundAsOf(page=page, number=number, total=len(names), whole=False, phases={})


def _names(store: Store, wanted: lease_filter.LeaseFilter, at: datetime) -> list[ObjectName]:
    living = store.select(wanted.kinds or tuple(Kind), tuple(Phase))
    names = [lease.key for lease in living]
    gone = gone_since(store.cluster, at, wanted.kinds)
    if gone:
        names = sorted(gone.union(names))
    if wanted.namespaces:
        names = [name for name in names if name.namespace in wanted.namespaces]
    return names


def _matches(state: State, wanted: lease_filter.LeaseFilter) -> bool:
    holder = state.standing.holder or ""
    if wanted.holder and not is_held_by(wanted.holder)(holder):
        return False
    text = wanted.text.lower()
    return text in str(state.key) or text in holder.lower()


def _severity(state: State) -> float:
    return EXCUSED_SEVERITY if state.excused else PAST_SEVERITY.get(state.standing.phase, 9)


def _by_name(state: State) -> Any:
    return state.key.name, state.key.namespace


def _by_since(state: State) -> Any:
    """The longest-held first."""
    since = state.standing.since
    return since is None, since.timestamp() if since else 0.0, state.key


_ORDERS: dict[str, Callable[[State], Any]] = {
    "state": lambda state: (_severity(state), state.key),
    "namespace": lambda state: state.key,
    "name": _by_name,
    "kind": lambda state: (state.kind, state.key),
    "holder": lambda state: (state.standing.holder is None, state.standing.holder or "", state.key),
    "held": _by_since,
    "transitions": lambda state: (state.transitions or 0, state.key),
}


def row_as_of(cluster: str, state: State, at: datetime, now: datetime) -> dict[str, Any]:
    standing, key = state.standing, state.key
    url = lease_url(cluster, key)
    return {
        "key": str(key),
        "namespace": key.namespace,
        "name": key.name,
        "shown": shown_name(cluster, key),
        "url": f"{url}?{urlencode({'at': write_moment(at)})}",
        "phase": standing.phase.value,
        "excuse": _excuse(state),
        "kind": state.kind.value,
        "holder": holder_view(standing.holder),
        "since": when(standing.since, now) if standing.since else "",
        "stood_for": time_since(cluster, standing.since, at).length if standing.since else "",
        "transitions": "" if state.transitions is None else thousands(state.transitions),
    }


def _excuse(state: State) -> str:
    if not state.excused:
        return FREE if state.free else ""
    return ABANDONED if state.abandoned else MAY_BE_VACANT


class PastLeaseFilter(lease_filter.LeaseFilter, frozen=True, kw_only=True):
    """`at` is the instant of a past list."""

    PARAMETERS = lease_filter.LeaseFilter.PARAMETERS | {"at": Parameter("at", read_moment)}
    at: datetime | None = None


class PastLeases(List[PastLeaseFilter, State]):
    """The Leases as of an instant."""

    reads = PastLeaseFilter
    templates = ("leases/as_of.html", "leases/_rows_as_of.html")
    draws_unknown_formats = True
    blind: UnwatchedTime | None = None

    @property
    def links(self) -> LeaseLinks:
        return LeaseLinks(self.request.path, self.wanted)

    @property
    def at(self) -> datetime:
        return self.wanted.at or self.now

    def find(self) -> FoundRows[State]:
        self.wanted = self.wanted.replace(at=passed(self.at, self.now))
        self.blind = blind_at(self.request.cluster.name, self.at, self.now)
        found = find_as_of(self.request.cluster.store, self.wanted, self.at)
        return FoundRows(found.page, found.total, found.number, more=found)

    def item(self, row: State) -> dict[str, Any]:
        name = self.request.cluster.name
        return item_as_of(name, row, self.at, watched=self.blind is None)

    def next_url(self, found: FoundRows[State]) -> str | None:
        if found.number * self.wanted.limit >= found.total:
            return None
        path = self.links.url_as("json", page=found.number + 1)
        return self.request.build_absolute_uri(path)

    def page(self, found: FoundRows[State]) -> dict[str, Any]:
        name, at, now = self.request.cluster.name, self.at, self.now
        rows = [row_as_of(name, state, at, now) for state in found.rows]
        return {"board": self._board(found.more), "rows": rows}

    def refused(self) -> dict[str, Any]:
        """Keep what was typed."""
        query = self.request.GET
        self.wanted = self.wanted.replace(at=self.now)
        usual = self._board(FoundAsOf(page=[], number=1, total=0, whole=True, phases={}))
        kept = {"at": typed(query, "at"), "wanted": lease_filter.typed_texts(query)}
        return {"board": usual | kept}

    def _board(self, found: FoundAsOf) -> dict[str, Any]:
        links, at = self.links, self.at
        stood = (PastPhase.HELD, PastPhase.EXPIRED, PastPhase.VACANT) if found.whole else ()
        phases = [links.phase(Phase(one.value), found.phases.get(one, 0)) for one in stood]
        abandoned = [links.abandoned(found.abandoned)] if found.whole else []
        known = self.request.cluster.store.known  # else most names are missing
        return {
            "at": write_moment(at),
            "instant": at,
            "moment": when(at, self.now, fine=bool(at.microsecond)),
            "wanted": self.wanted,
            "kept": links.kept("kind", "phase", "abandoned"),
            "kinds": links.kinds(),
            "phases": as_far_as(phases, known=known),
            "abandoned": next(iter(as_far_as(abandoned, known=known)), None),
            "blind": why_blind(self.blind),
            "absent": found.absent,
            "whole": found.whole,
            "pager": links.pager(found.number, found.total),
            "path": links.path,
            "now_url": links.url(at=None),
            "json_url": links.url_as("json"),
        }


MAX_NAME = 253  # characters, as Kubernetes has it


class PresentLeases(List[lease_filter.LeaseFilter, Tracked]):
    """The Leases of now."""

    name = "leases"
    reads = lease_filter.LeaseFilter
    templates = ("leases/index.html", "leases/_rows.html")
    shows_now = True
    draws_unknown_formats = True

    @cached_property
    def as_of(self) -> datetime:
        return self.request.cluster.as_of(self.now)

    @cached_property
    def flappers(self) -> Flappers:
        return flappers_of(self.request.cluster.name, self.as_of)

    @cached_property
    def activity(self) -> Activity:
        return running_board().feeds[self.request.cluster.name].activity

    @property
    def links(self) -> LeaseLinks:
        return LeaseLinks(self.request.path, self.wanted)

    def find(self) -> FoundRows[Tracked]:
        busy = partial(_changes_of, self.activity, self.wanted.range, self.now)
        store = self.request.cluster.store
        found = lease_filter.find(store, self.wanted, flapping=self.flappers, busy=busy)
        return FoundRows(found.page, found.total, found.number, more=found)

    def item(self, row: Tracked) -> dict[str, Any]:
        return lease_item(self.request.cluster.name, row, self.flappers.get(row.key))

    def page(self, found: FoundRows[Tracked]) -> dict[str, Any]:
        unwatched = unwatched_by_hour(self.activity.watched, self.now)
        return {
            "board": self._board(found),
            "rows": [
                row_view(
                    self.request.cluster.name,
                    lease,
                    self.as_of,
                    hours=self.activity.of(lease.key, self.now),
                    unwatched=unwatched,
                    flapping=self.flappers.get(lease.key),
                )
                for lease in found.rows
            ],
            "absent": _absent_now(self.request),
            "rights": known_rights(self.request, self.wanted.only_namespace, ON_LIST),
        }

    def refused(self) -> dict[str, Any]:
        """Keep what was typed, and count all Leases."""
        kept = {"wanted": lease_filter.typed_texts(self.request.GET)}
        return {"board": self._board(self.find()) | kept}

    def _board(self, found: FoundRows[Tracked]) -> dict[str, Any]:
        store = self.request.cluster.store
        return board(self.links, found.more, store.namespaces(), known=store.known)


FILTERS["leases"] = PastLeaseFilter  # the page has both


@require_safe
@viewer_required
def leases(request: ClusterRequest, _cluster: str) -> HttpResponseBase:
    """The list as a page, as the part that a filter changes, or as JSON; with `?at=` as of then."""
    return (PastLeases if request.GET.get("at") else PresentLeases)(request).answer()


def _changes_of(activity: Activity, name: str, now: datetime) -> Mapping[ObjectName, int]:
    """The number of changes in a range, by Lease. Hours count whole, but the last one."""
    length = lease_filter.RANGES[name]
    if length <= HOUR:
        return activity.last_hour.totals(now - length)
    return activity.totals(now, hours=length // HOUR)


def _absent_now(request: ClusterRequest) -> dict[str, str]:
    """The Lease of another cluster that this one does not have: see switch_view."""
    namespace, _, name = typed(request.GET, "absent").partition("/")
    if not name or request.cluster.store.get(ObjectName(namespace, name)) is not None:
        return {}
    return {"key": shortened(f"{namespace}/{name}", MAX_NAME), "name": name[:MAX_NAME]}
