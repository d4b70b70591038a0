"""Read from a URL which Leases are wanted; find and sort them without reading all."""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import chain, islice, tee
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
from django.http import QueryDict

from dashboard.lists.url_parameters import (
    FILTERS,
    LIMIT,
    PAGE,
    BadFilter,
    ListFilter,
    Parameter,
    is_true,
    joined_names,
    one_of,
    quoted,
    sort_by,
    true_or_false,
    typed,
    words,
)
from dashboard.parts.key_figures import Counts
from dashboard.parts.names import is_held_by
from leases.domain.figures import EXCUSED_SEVERITY, FLAPPING_SEVERITY, SEVERITY
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked
from leases.wire.selectors import SelectorError, parse_labels

PAGE_SIZE = 50
WORST_FIRST = "state"
COLUMNS = (
    WORST_FIRST, "namespace", "name", "kind", "holder", "held", "renewed", "changes", "transitions",
)  # fmt: skip
# In which the sort by `changes` counts.
RANGES = {
    "24h": timedelta(hours=24),
    "6h": timedelta(hours=6),
    "1h": timedelta(hours=1),
    "30m": timedelta(minutes=30),
}
USUAL_RANGE = "24h"
Matcher = Callable[[Tracked], bool]


class LeaseFilter(ListFilter, frozen=True, kw_only=True):
    """An empty field filters nothing.

    `text` is part of namespace/name or of the holder, in any case; `namespace` may be several with
    commas between them; `holder` is an identity or the host in it; `labels` is a label selector of
    Kubernetes.
    `flapping` adds the Leases that flap to those of `phases`; alone, it leaves only them.
    `abandoned` is "true" for nothing but abandoned Leases, "false" for none of them.
    """

    PARAMETERS = {
        "text": Parameter("q"),
        "namespace": Parameter("namespace", joined_names),
        "holder": Parameter("holder"),
        "labels": Parameter("labels"),
        "kinds": Parameter("kind", words, Kind),
        "phases": Parameter("phase", words, Phase),
        "flapping": Parameter("flapping", is_true),
        "abandoned": Parameter("abandoned", true_or_false),
        "sort": Parameter("sort", sort_by, COLUMNS),
        "range": Parameter("range", one_of, tuple(RANGES)),
        "limit": LIMIT,
        "page": PAGE,
    }
    text: str = ""
    namespace: str = ""
    holder: str = ""
    labels: str = ""
    kinds: tuple[Kind, ...] = ()
    phases: tuple[Phase, ...] = ()
    flapping: bool = False
    abandoned: str = ""
    sort: str = WORST_FIRST
    range: str = USUAL_RANGE
    limit: int = PAGE_SIZE

    def check(self) -> None:
        _selects(self.labels)

    @property
    def searches(self) -> bool:
        """Whether each Lease must be read to decide if it is wanted."""
        return bool(self.text or self.holder or self.labels)

    @property
    def chooses(self) -> bool:
        """Whether it leaves out any Lease."""
        some = self.namespace or self.kinds or self.phases or self.flapping or self.abandoned
        return bool(self.searches or some)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(filter(None, self.namespace.split(",")))

    @property
    def only_namespace(self) -> str:
        """ "" where there are several or all."""
        return self.namespaces[0] if len(self.namespaces) == 1 else ""

    @property
    def wanted_phases(self) -> tuple[Phase, ...]:
        return self.phases if self.phases or self.flapping else tuple(Phase)


FILTERS["wall"] = LeaseFilter


def typed_texts(query: QueryDict) -> LeaseFilter:
    """A refused filter for the form that shows its texts again."""
    names = ("q", "namespace", "holder", "labels")
    words, namespace, holder, labels = (typed(query, name) for name in names)
    return LeaseFilter(text=words, namespace=namespace, holder=holder, labels=labels)


def searched(wanted: LeaseFilter) -> Matcher:
    tests: list[Matcher] = []
    if wanted.holder:
        tests.append(_held_by(wanted.holder))
    if wanted.labels:
        tests.append(_selects(wanted.labels))
    if wanted.text:
        tests.append(_contains(wanted.text.lower()))
    return tests[0] if len(tests) == 1 else lambda lease: all(test(lease) for test in tests)


def wants(wanted: LeaseFilter, flaps: Matcher = lambda _: False) -> Matcher:
    """`flaps` tests whether a Lease flaps."""
    holds, phases, namespaces = searched(wanted), wanted.wanted_phases, wanted.namespaces

    def matches(lease: Tracked) -> bool:
        return (
            (lease.phase in phases or (wanted.flapping and flaps(lease)))
            and (not wanted.kinds or lease.kind in wanted.kinds)
            and (not namespaces or lease.key.namespace in namespaces)
            and (not wanted.abandoned or lease.abandoned is (wanted.abandoned == "true"))
            and holds(lease)
        )

    return matches


def _contains(text: str) -> Matcher:
    """A test for the text. Names are lower case already; only holders need folding."""
    namespace, slash, name = text.partition("/")

    def matches(lease: Tracked) -> bool:
        meta = lease.lasting.lease.metadata
        if slash and meta.namespace.endswith(namespace) and meta.name.startswith(name):
            return True
        if text in meta.name or text in meta.namespace:
            return True
        holder = lease.lasting.lease.spec.holder_identity
        return holder is not None and holder != meta.name and text in holder.lower()

    return matches


def _held_by(holder: str) -> Matcher:
    named = is_held_by(holder)
    return lambda lease: lease.holder is not None and named(lease.holder)


def _selects(labels: str) -> Matcher:
    try:
        requirements = parse_labels(labels)
    except SelectorError as error:
        raise BadFilter(
            f"labels cannot be {quoted(labels)}: {error}. Write it as for kubectl: app=web,tier!=x."
        ) from error
    bare = all(holds({}) for holds in requirements)  # most Leases have no label

    def matches(lease: Tracked) -> bool:
        found = lease.lasting.lease.metadata.labels
        return all(holds(found) for holds in requirements) if found else bare

    return matches


SORTED_WHOLE = 2000  # from so many wanted rows on, a full sort is cheaper than a heap
RUN = 4096  # rows sorted at a time, because no other thread runs meanwhile


class FoundLeases(msgspec.Struct, frozen=True):
    """One page; `counts` are before the filter by kind and phase. `flapping` and `abandoned` count
    those that are.
    """

    page: list[Tracked]
    number: int
    total: int
    counts: Counts
    flapping: Counts
    abandoned: Counts


BusyCounts = Callable[[], Mapping[ObjectName, int]]


def find(
    shelf: Store,
    wanted: LeaseFilter,
    *,
    flapping: Iterable[ObjectName] = (),
    busy: BusyCounts = dict,
) -> FoundLeases:
    """Find the wanted page, or the last one. `flapping` are the Leases that flap, the worst first;
    `busy` counts the changes in the wanted range by Lease.
    """
    kinds, phases = wanted.kinds or tuple(Kind), wanted.wanted_phases
    source, counts = _selected(shelf, wanted)
    whole = wanted.replace(kinds=(), phases=(), flapping=False)
    matches = wants(whole)
    excused = list(filter(wants(whole.replace(abandoned="")), shelf.excused()))
    flappers = [one for key in flapping if (one := shelf.get(key)) is not None and matches(one)]
    of_kinds = [one for one in flappers if one.kind in kinds]
    extra = [one for one in of_kinds if one.phase not in phases] if wanted.flapping else []
    total = sum(counts.get(kind, {}).get(phase, 0) for kind in kinds for phase in phases)
    number, place = wanted.page_of(total + len(extra))
    if wanted.column == WORST_FIRST:
        raised = [one for one in of_kinds if _stands_above(one, phases, wanted)]
        last = [t for t in excused if t.kind in kinds and t.phase in phases and matches(t)]
        last = list(_without(last, raised))
        rows = _worst_first(source, kinds, phases, raised, last, turned=wanted.descending)
    else:
        rows = _in_order(_and(source(kinds, phases), extra), wanted, place.stop, busy)
    page = list(islice(rows, place.start, place.stop))
    return FoundLeases(
        page=page,
        number=number,
        total=total + len(extra),
        counts=counts,
        flapping=_counts(_by_phase(flappers)),
        abandoned=_counts(_by_phase(one for one in excused if one.abandoned)),
    )


_NAME = attrgetter("key")
_Source = Callable[[Collection[Kind], Collection[Phase]], Iterable[Tracked]]
_Piles = Mapping[Phase, list[Tracked]]


def _selected(shelf: Store, wanted: LeaseFilter) -> tuple[_Source, Counts]:
    """The Leases before the filter by kind and phase, and how many they are."""
    if wanted.abandoned == "true":
        piles = _by_phase(filter(wants(wanted.replace(kinds=(), phases=())), shelf.excused()))
        return _among(piles), _counts(piles)
    without = [one for one in shelf.excused() if one.abandoned] if wanted.abandoned else []
    if wanted.namespace or wanted.searches:
        of_each = [shelf.of_namespace(one) for one in sorted(set(wanted.namespaces))]
        some = chain.from_iterable(of_each) if of_each else shelf.snapshot()
        some_wanted = filter(searched(wanted), some) if wanted.searches else some
        piles = _by_phase(_without(some_wanted, without))
        return _among(piles), _counts(piles)
    counts = shelf.counts()
    for one in without:
        counts[one.kind][one.phase] -= 1
    return lambda kinds, phases: _without(shelf.select(kinds, phases), without), counts


def _by_phase(leases: Iterable[Tracked]) -> _Piles:
    piles: dict[Phase, list[Tracked]] = {phase: [] for phase in Phase}
    for one in leases:
        piles[one.phase].append(one)
    return piles


def _among(piles: _Piles) -> _Source:
    """Select from piles in name order, as Store.select does."""

    def select(kinds: Collection[Kind], phases: Collection[Phase]) -> Iterable[Tracked]:
        some = [piles[phase] for phase in phases if piles[phase]]
        rows = some[0] if len(some) == 1 else heapq.merge(*some, key=_NAME)
        return rows if len(kinds) == len(Kind) else (one for one in rows if one.kind in kinds)

    return select


def _counts(piles: _Piles) -> Counts:
    counts: dict[Kind, dict[Phase, int]] = {}
    for phase, some in piles.items():
        for kind, many in Counter(map(attrgetter("kind"), some)).items():
            counts.setdefault(kind, {})[phase] = many
    return counts


def _stands_above(flapper: Tracked, phases: Collection[Phase], wanted: LeaseFilter) -> bool:
    """Whether a Lease is listed because it flaps, or higher than the others of its phase."""
    if flapper.phase not in phases:
        return wanted.flapping
    return SEVERITY[flapper.phase] > FLAPPING_SEVERITY


def _without(rows: Iterable[Tracked], some: Iterable[Tracked]) -> Iterable[Tracked]:
    names = {one.key for one in some}
    return (one for one in rows if one.key not in names) if names else rows


def _and(rows: Iterable[Tracked], extra: Sequence[Tracked]) -> Iterable[Tracked]:
    """Add rows in the order of names."""
    if not extra:
        return rows
    return heapq.merge(_without(rows, extra), sorted(extra, key=_NAME), key=_NAME)


def _worst_first(
    source: _Source,
    kinds: Collection[Kind],
    phases: Collection[Phase],
    raised: Sequence[Tracked],
    last: Sequence[Tracked],
    *,
    turned: bool,
) -> Iterable[Tracked]:
    """By severity; equal rows stay in name order. Phases are few: sort them, not the Leases."""
    moved = (*raised, *last)
    piles: list[tuple[float, Iterable[Tracked]]] = [
        (FLAPPING_SEVERITY, raised), (EXCUSED_SEVERITY, last),
    ]  # fmt: skip
    piles += [(SEVERITY[one], _without(source(kinds, (one,)), moved)) for one in set(phases)]
    piles.sort(key=itemgetter(0), reverse=turned)
    return chain.from_iterable(pile for _, pile in piles)


def _in_order(
    rows: Iterable[Tracked], wanted: LeaseFilter, limit: int, busy: BusyCounts
) -> Iterable[Tracked]:
    """At least the first `limit` rows by a column; equal rows stay in name order."""
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
