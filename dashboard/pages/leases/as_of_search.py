"""Find the Leases as of an instant.

Candidates are the Leases of today and those deleted since; history says how each stood. Up to
MAX_MATCHES candidates are read together, so that they can be filtered by phase and holder and
sorted. Of more, only one page is read, in the order of names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec

from dashboard.parts.query.holder_parameter import is_held_by
from dashboard.parts.query.lease_filter import LeaseFilter
from dashboard.parts.query.url_parameters import BadFilter
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.as_of import PastPhase
from leases.domain.phase import Phase
from leases.domain.severity import EXCUSED_SEVERITY, PAST_SEVERITY
from leases.history.read.states_as_of import State, gone_since, states_at
from leases.tracking.store import Store

MAX_MATCHES = 5000


class FoundAsOf(msgspec.Struct, frozen=True, kw_only=True):
    page: list[State]
    number: int
    total: int  # matches; without `whole`, candidates
    whole: bool  # all candidates were read
    absent: int = 0  # matching Leases of today that did not exist then; only if `whole`
    phases: dict[PastPhase, int]  # counts before the filter by phase; only if `whole`
    abandoned: int = 0  # before the filter by it; only if `whole`


def find_as_of(store: Store, wanted: LeaseFilter, at: datetime) -> FoundAsOf:
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


def _absent(store: Store, wanted: LeaseFilter, there: Collection[ObjectName], at: datetime) -> int:
    """Count the Leases of today that match by name and kind and were created later."""
    if wanted.holder:
        return 0  # their holder at that time is unknown
    text = wanted.text.lower()
    return sum(
        lease.key not in there
        and text in str(lease.key)
        and wanted.namespace in ("", lease.key.namespace)
        and (lease.lasting.lease.metadata.creation_timestamp or at) > at
        for lease in store.select(wanted.kinds or tuple(Kind), tuple(Phase))
    )


def _one_page(
    store: Store, wanted: LeaseFilter, names: Sequence[ObjectName], at: datetime
) -> FoundAsOf:
    if wanted.phases or wanted.holder or wanted.text or wanted.abandoned:
        raise BadFilter(
            f"{len(names):,} Leases are too many to search at an instant: choose a kind or a "
            f"namespace that leaves {MAX_MATCHES:,} or fewer."
        )
    number, place = wanted.page_of(len(names))
    page = states_at(store.cluster, names[place], at, abandoned_after=store.abandoned_after)
    return FoundAsOf(page=page, number=number, total=len(names), whole=False, phases={})


def _names(store: Store, wanted: LeaseFilter, at: datetime) -> list[ObjectName]:
    living = store.select(wanted.kinds or tuple(Kind), tuple(Phase))
    names = [lease.key for lease in living]
    gone = gone_since(store.cluster, at, wanted.kinds)
    if gone:
        names = sorted(gone.union(names))
    if wanted.namespace:
        names = [name for name in names if name.namespace == wanted.namespace]
    return names


def _matches(state: State, wanted: LeaseFilter) -> bool:
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
