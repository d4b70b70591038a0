"""The Leases that a filter wants, in its order, without sorting or looking at all of them where
that can be helped.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from dashboard.lease_filter import WORST_FIRST, LeaseFilter, searched
from dashboard.presenters.kpis import Counts
from dashboard.presenters.row import SEVERITY
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.tracking.tracked import Tracked

SORTED_WHOLE = 2000  # rows wanted, from which on sorting all is cheaper than a heap of them


class Shelf(Protocol):
    """The Leases of one cluster: the part of a Store that is searched."""

    def snapshot(self) -> tuple[Tracked, ...]: ...
    def select(self, kinds: Collection[Kind], phases: Collection[Phase]) -> Iterator[Tracked]: ...
    def of_namespace(self, namespace: str) -> tuple[Tracked, ...]: ...
    def counts(self) -> dict[Kind, dict[Phase, int]]: ...


class Found(msgspec.Struct, frozen=True):
    """One page of what matches, how many match, and how many there are per kind and phase before
    these two.
    """

    page: list[Tracked]
    number: int
    total: int
    tally: Counts


Busy = Callable[[ObjectName], int]


def find(shelf: Shelf, wanted: LeaseFilter, *, busy: Busy = lambda _: 0) -> Found:
    """The page that is wanted; the last one, if there are fewer. `busy` tells how many changes a
    Lease had lately, for that column.
    """
    kinds, phases = wanted.kinds or tuple(Kind), wanted.phases or tuple(Phase)
    some: Sequence[Tracked] | None = None
    tally: Counts = shelf.counts()
    if wanted.namespace or wanted.searches:
        some = shelf.of_namespace(wanted.namespace) if wanted.namespace else shelf.snapshot()
        if wanted.searches:
            some = list(filter(searched(wanted), some))
        tally = _tally(some)
    total = sum(tally.get(kind, {}).get(phase, 0) for kind in kinds for phase in phases)
    page = min(wanted.page, max(1, -(-total // wanted.limit)))
    start = (page - 1) * wanted.limit

    def of(*some_phases: Phase) -> Iterable[Tracked]:
        if some is None:
            return shelf.select(kinds, some_phases)
        return (one for one in some if one.phase in some_phases and one.kind in kinds)

    rows = _in_order(of, phases, wanted, start + wanted.limit, busy)
    return Found(list(islice(rows, start, start + wanted.limit)), page, total, tally)


def _tally(leases: Sequence[Tracked]) -> Counts:
    tally: dict[Kind, dict[Phase, int]] = {}
    for (kind, phase), many in Counter([(one.kind, one.phase) for one in leases]).items():
        tally.setdefault(kind, {})[phase] = many
    return tally


def _in_order(
    of: Callable[..., Iterable[Tracked]],
    phases: Sequence[Phase],
    wanted: LeaseFilter,
    limit: int,
    busy: Busy,
) -> Iterable[Tracked]:
    """At least the first `limit` in the order that is wanted. Equals stay in name order."""
    if wanted.column == WORST_FIRST:  # phases are few: sort them, not the Leases
        worst = sorted(set(phases), key=SEVERITY.__getitem__, reverse=wanted.descending)
        return chain.from_iterable(map(of, worst))
    if wanted.column == "namespace":  # the order they are in
        return list(of(*phases))[::-1] if wanted.descending else of(*phases)
    if wanted.column == "changes":
        return _first(of(*phases), lambda one: busy(one.key), limit, most=not wanted.descending)
    return _by_attribute(list(of(*phases)), wanted, limit)


_ATTRIBUTES = {
    "name": "lease.metadata.name",
    "kind": "kind",
    "holder": "holder",
    "held": "held_since",
    "renewed": "observed_at",
    "transitions": "lease.spec.lease_transitions",
}
_AGES = ("held", "renewed")  # the shorter the age, the later the time


def _by_attribute(leases: list[Tracked], wanted: LeaseFilter, limit: int) -> Iterable[Tracked]:
    """Those without it, such as without a holder, come before all others, or after them."""
    get = attrgetter(_ATTRIBUTES[wanted.column])
    most = wanted.descending is not (wanted.column in _AGES)
    without = [one for one, key in zip(leases, map(get, leases), strict=True) if key is None]
    if without:
        leases = [one for one in leases if get(one) is not None]
    known = _first(leases, get, limit, most=most)
    return chain(known, without) if wanted.descending else chain(without, known)


def _first(
    leases: Iterable[Tracked], key: Callable[[Tracked], Any], limit: int, *, most: bool
) -> list[Tracked]:
    if limit > SORTED_WHOLE:
        return sorted(leases, key=key, reverse=most)
    return heapq.nlargest(limit, leases, key) if most else heapq.nsmallest(limit, leases, key)
