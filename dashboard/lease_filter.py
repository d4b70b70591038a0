"""Which Leases a page or a program asks for, read from a URL; and the Leases that match, without
sorting all of them.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from django.http import QueryDict

from dashboard.presenters.kpis import Counts
from dashboard.presenters.row import SEVERITY
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.tracking.tracked import Tracked

PAGE_SIZE = 50
LARGEST_PAGE = 1000
WORST_FIRST = "state"
NAMES = frozenset({"q", "namespace", "kind", "phase", "sort", "page", "limit", "format"})
E = TypeVar("E", bound=StrEnum)


class BadFilter(ValueError):
    """A filter that cannot be used; the text is one sentence that says what to write instead."""


class LeaseFilter(msgspec.Struct, frozen=True, kw_only=True):
    """An empty field wants all. `text` is part of namespace/name or of the holder, in any case of
    letters.
    """

    text: str = ""
    namespace: str = ""
    kinds: tuple[Kind, ...] = ()
    phases: tuple[Phase, ...] = ()
    sort: str = WORST_FIRST
    page: int = 1
    limit: int = PAGE_SIZE

    @property
    def descending(self) -> bool:
        return self.sort.startswith("-")

    @property
    def column(self) -> str:
        return self.sort.removeprefix("-")


class Found(msgspec.Struct, frozen=True):
    """One page of what matches, how many match, and how many there are per kind and phase before
    these two.
    """

    page: list[Tracked]
    number: int
    total: int
    tally: Counts


def read_filter(query: QueryDict) -> LeaseFilter:
    """Raises BadFilter."""
    sort = query.get("sort") or WORST_FIRST
    if sort.removeprefix("-") not in COLUMNS:
        raise BadFilter(
            f"sort cannot be {sort!r}: use one of {', '.join(COLUMNS)}, with - in front to turn it."
        )
    return LeaseFilter(
        text=query.get("q", "").strip(),
        namespace=query.get("namespace", "").strip(),
        kinds=words(query, "kind", Kind),
        phases=words(query, "phase", Phase),
        sort=sort,
        page=number(query, "page", default=1, largest=10**9),
        limit=number(query, "limit", default=PAGE_SIZE, largest=LARGEST_PAGE),
    )


def words(query: QueryDict, name: str, allowed: type[E]) -> tuple[E, ...]:
    """The values of a parameter that may be given many times."""
    try:
        return tuple(allowed(value) for value in query.getlist(name) if value)
    except ValueError as error:
        choices = ", ".join(word.value for word in allowed)
        raise BadFilter(
            f"{name} cannot be {str(error).split(' is ')[0]}: use one of {choices}."
        ) from error


def number(query: QueryDict, name: str, *, default: int, largest: int) -> int:
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:12]) <= largest:
        raise BadFilter(f"{name} cannot be {text!r}: use a whole number from 1 to {largest:,}.")
    return int(text)


def find(leases: Sequence[Tracked], wanted: LeaseFilter, *, counts: Counts) -> Found:
    """The page that is wanted (the last one, if there are fewer) of `leases`, which are in name
    order.

    `counts` are those of all `leases`, so that they need not be counted again.
    """
    some = _searched(leases, wanted)
    tally = _tally(some) if wanted.text or wanted.namespace else counts
    kinds, phases = frozenset(wanted.kinds or Kind), frozenset(wanted.phases or Phase)
    if wanted.kinds or wanted.phases:
        some = [lease for lease in some if lease.kind in kinds and lease.phase in phases]
    total = len(some)
    pages = max(1, -(-total // wanted.limit))
    page = min(wanted.page, pages)
    start = (page - 1) * wanted.limit
    rows = _sorted(some, wanted, start + wanted.limit)[start : start + wanted.limit]
    return Found(list(rows), page, total, tally)


def _tally(leases: Sequence[Tracked]) -> Counts:
    tally: dict[Kind, dict[Phase, int]] = {}
    for (kind, phase), many in Counter((lease.kind, lease.phase) for lease in leases).items():
        tally.setdefault(kind, {})[phase] = many
    return tally


def namespaces(leases: Sequence[Tracked]) -> list[str]:
    """All namespaces; jumps from one to the next, since the leases are in name order."""
    found: list[str] = []
    at = 0
    while at < len(leases):
        name = _namespace(leases[at])
        found.append(name)
        at = bisect_right(leases, name, lo=at, key=_namespace)
    return found


def _namespace(lease: Tracked) -> str:
    return lease.lease.metadata.namespace


def _searched(leases: Sequence[Tracked], wanted: LeaseFilter) -> Sequence[Tracked]:
    """Those of the namespace that contain the text."""
    if wanted.namespace:
        first = bisect_left(leases, wanted.namespace, key=_namespace)
        leases = leases[first : bisect_right(leases, wanted.namespace, lo=first, key=_namespace)]
    if not wanted.text:
        return leases
    text = wanted.text.lower()
    return [lease for lease in leases if any(text in part.lower() for part in _texts(lease))]


def _texts(lease: Tracked) -> Iterator[str]:
    meta = lease.lease.metadata
    yield f"{meta.namespace}/{meta.name}"
    yield lease.holder or ""


def _sorted(leases: Sequence[Tracked], wanted: LeaseFilter, limit: int) -> Sequence[Tracked]:
    """The first `limit` in the order that is wanted. Equals stay in name order."""
    if wanted.column == WORST_FIRST:  # phases are few: sort them, not the Leases
        return _by_phase(leases, descending=wanted.descending)
    if wanted.column == "namespace":  # the order they are in
        return leases[::-1] if wanted.descending else leases
    key = COLUMNS[wanted.column]
    if wanted.descending:
        return heapq.nlargest(limit, leases, key=key)
    return heapq.nsmallest(limit, leases, key=key)


def _by_phase(leases: Sequence[Tracked], *, descending: bool) -> list[Tracked]:
    by_phase: dict[Phase, list[Tracked]] = {phase: [] for phase in Phase}
    for lease in leases:
        by_phase[lease.phase].append(lease)
    order = sorted(Phase, key=SEVERITY.__getitem__, reverse=descending)
    return [lease for phase in order for lease in by_phase[phase]]


def _held_since(lease: Tracked) -> float:
    """The shorter the smaller; nobody before all."""
    return -lease.held_since.timestamp() if lease.held_since else float("-inf")


COLUMNS: dict[str, Callable[[Tracked], Any]] = {
    WORST_FIRST: lambda lease: SEVERITY[lease.phase],
    "namespace": _namespace,
    "name": lambda lease: lease.lease.metadata.name,
    "kind": lambda lease: lease.kind.value,
    "holder": lambda lease: lease.holder or "",
    "held": _held_since,
    "renewed": lambda lease: -lease.observed_at.timestamp(),
    "transitions": lambda lease: lease.lease.spec.lease_transitions or 0,
}
