"""Find and sort the Leases that a filter selects, if possible without reading all of them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice, tee
from operator import attrgetter
from typing import Any

import msgspec

from dashboard.parts.key_figures import Counts
from dashboard.parts.query.lease_filter import WORST_FIRST, LeaseFilter, searched
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.severity import SEVERITY
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked

SORTED_WHOLE = 2000  # from so many wanted rows on, a full sort is cheaper than a heap
RUN = 4096  # rows sorted at a time, because no other thread runs meanwhile


class FoundLeases(msgspec.Struct, frozen=True):
    """One page; `counts` are before the filter by kind and phase."""

    page: list[Tracked]
    number: int
    total: int
    counts: Counts


BusyCounts = Callable[[], Mapping[ObjectName, int]]


def find(shelf: Store, wanted: LeaseFilter, *, busy: BusyCounts = dict) -> FoundLeases:
    """Find the wanted page, or the last one. `busy` counts the last day's changes by Lease."""
    kinds, phases = wanted.kinds or tuple(Kind), wanted.phases or tuple(Phase)
    source: _Source = shelf.select
    counts: Counts = shelf.counts()
    if wanted.namespace or wanted.searches:
        some = shelf.of_namespace(wanted.namespace) if wanted.namespace else shelf.snapshot()
        piles = _by_phase(filter(searched(wanted), some) if wanted.searches else some)
        source, counts = _among(piles), _counts(piles)
    total = sum(counts.get(kind, {}).get(phase, 0) for kind in kinds for phase in phases)
    number, place = wanted.page_of(total)
    rows = _in_order(source, kinds, phases, wanted, place.stop, busy)
    return FoundLeases(list(islice(rows, place.start, place.stop)), number, total, counts)


_Source = Callable[[Collection[Kind], Collection[Phase]], Iterable[Tracked]]
_Piles = Mapping[Phase, list[Tracked]]


def _by_phase(leases: Iterable[Tracked]) -> _Piles:
    piles: dict[Phase, list[Tracked]] = {phase: [] for phase in Phase}
    for one in leases:
        piles[one.phase].append(one)
    return piles


def _among(piles: _Piles) -> _Source:
    """Select from piles in name order, as Store.select does."""

    def select(kinds: Collection[Kind], phases: Collection[Phase]) -> Iterable[Tracked]:
        some = [piles[phase] for phase in phases if piles[phase]]
        rows = some[0] if len(some) == 1 else heapq.merge(*some, key=attrgetter("key"))
        return rows if len(kinds) == len(Kind) else (one for one in rows if one.kind in kinds)

    return select


def _counts(piles: _Piles) -> Counts:
    counts: dict[Kind, dict[Phase, int]] = {}
    for phase, some in piles.items():
        for kind, many in Counter(map(attrgetter("kind"), some)).items():
            counts.setdefault(kind, {})[phase] = many
    return counts


def _in_order(
    source: _Source,
    kinds: Collection[Kind],
    phases: Collection[Phase],
    wanted: LeaseFilter,
    limit: int,
    busy: BusyCounts,
) -> Iterable[Tracked]:
    """At least the first `limit` rows in the wanted order; equal rows stay in name order."""
    if wanted.column == WORST_FIRST:  # phases are few: sort them, not the Leases
        worst = sorted(set(phases), key=SEVERITY.__getitem__, reverse=wanted.descending)
        return chain.from_iterable(source(kinds, (phase,)) for phase in worst)
    rows = source(kinds, phases)
    if wanted.column == "namespace":  # rows are in this order
        return list(rows)[::-1] if wanted.descending else rows
    if wanted.column == "changes":
        return _busiest(rows, busy(), turned=wanted.descending)
    return _by_attribute(list(rows), wanted, limit)


def _busiest(
    rows: Iterable[Tracked], busy: Mapping[ObjectName, int], *, turned: bool
) -> Iterable[Tracked]:
    """Sort the few Leases that changed; the others follow in name order, or come first."""
    first, second = tee(rows)
    moved = [one for one in first if one.key in busy] if busy else []
    moved.sort(key=lambda one: busy[one.key], reverse=not turned)
    still = (one for one in second if one.key not in busy)
    return chain(still, moved) if turned else chain(moved, still)


_ATTRIBUTES = {
    "name": "key.name",
    "kind": "kind",
    "holder": "holder",
    "held": "held_since",
    "renewed": "observed_at",
    "transitions": "lasting.lease.spec.lease_transitions",
}
_AGES = ("held", "renewed")  # the shorter the age, the later the time


def _by_attribute(leases: list[Tracked], wanted: LeaseFilter, limit: int) -> Iterable[Tracked]:
    """Sort by one attribute; Leases without it come first, or last if descending."""
    get = attrgetter(_ATTRIBUTES[wanted.column])
    most = wanted.descending is not (wanted.column in _AGES)
    without = [one for one, key in zip(leases, map(get, leases), strict=True) if key is None]
    if without:
        leases = [one for one in leases if get(one) is not None]
    known = _first(leases, get, limit, most=most)
    return chain(known, without) if wanted.descending else chain(without, known)


def _first(
    leases: Sequence[Tracked], key: Callable[[Tracked], Any], limit: int, *, most: bool
) -> Iterable[Tracked]:
    if limit > SORTED_WHOLE:
        parts = (leases[first : first + RUN] for first in range(0, len(leases), RUN))
        runs = [sorted(part, key=key, reverse=most) for part in parts]
        return heapq.merge(*runs, key=key, reverse=most)
    return heapq.nlargest(limit, leases, key) if most else heapq.nsmallest(limit, leases, key)
