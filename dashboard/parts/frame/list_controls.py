"""The controls around the list of Leases: chips with counts, column heads, pager, and the words for
an empty list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.parts.formatting import capitalized
from dashboard.parts.query.lease_filter import PAGE_SIZE, WORST_FIRST, LeaseFilter
from dashboard.parts.query.lease_search import FoundLeases
from leases.domain.kind import Kind
from leases.domain.phase import Phase


class Chip(msgspec.Struct, frozen=True):
    """One choice of a filter: a link that turns it on or off.

    `live` names the number of a live frame that replaces the count, or "".
    """

    value: str
    label: str
    count: int
    url: str
    on: bool
    live: str = ""


class Head(msgspec.Struct, frozen=True):
    """A column head; `sorted` is "ascending", "descending" or ""; `second` is in the same cell."""

    label: str
    url: str
    sorted: str
    css: str = ""
    second: Head | None = None


class ListFrame(msgspec.Struct, frozen=True, kw_only=True):
    """`kept` are the parameters that the search form must keep; `says` is the filter in words."""

    text: str
    namespace: str
    holder: str
    labels: str
    namespaces: Sequence[str]
    kinds: tuple[Chip, ...]
    phases: tuple[Chip, ...]
    heads: tuple[Head, ...]
    kept: tuple[tuple[str, str], ...]
    clears: tuple[Chip, ...]
    says: str
    first: int
    last: int
    total: int
    previous_url: str
    next_url: str
    clear_url: str
    json_url: str


KIND_LABELS = {
    Kind.ELECTION: "Elections",
    Kind.HEARTBEAT: "Heartbeats",
    Kind.IDENTITY: "Identities",
    Kind.LOCK: "Locks",
    Kind.UNKNOWN: "Unknown",
}


def query_of(wanted: LeaseFilter, **changes: Any) -> str:
    """The query string of a filter, without default values."""
    wanted = msgspec.structs.replace(wanted, **changes)
    pairs = [("q", wanted.text), ("namespace", wanted.namespace)]
    pairs += [("holder", wanted.holder), ("labels", wanted.labels)]
    pairs += [("kind", kind.value) for kind in wanted.kinds]
    pairs += [("phase", phase.value) for phase in wanted.phases]
    pairs += [("sort", wanted.sort)] if wanted.sort != WORST_FIRST else []
    pairs += [("limit", str(wanted.limit))] if wanted.limit != PAGE_SIZE else []
    pairs += [("page", str(wanted.page))] if wanted.page > 1 else []
    return urlencode([pair for pair in pairs if pair[1]])


def board(
    path: str, wanted: LeaseFilter, found: FoundLeases, namespaces: Sequence[str]
) -> ListFrame:
    """Make the controls; `path` is the page's own."""

    def url(**changes: Any) -> str:
        query = query_of(wanted, **{"page": 1, **changes})
        return f"{path}?{query}" if query else path

    start = (found.number - 1) * wanted.limit
    last = start + len(found.page)
    return ListFrame(
        text=wanted.text,
        namespace=wanted.namespace,
        holder=wanted.holder,
        labels=wanted.labels,
        namespaces=namespaces,
        kinds=_kind_chips(wanted, found, url),
        phases=_phase_chips(wanted, found, url),
        heads=_heads(wanted, url),
        kept=_kept(wanted),
        clears=_clears(wanted, url),
        says=says(wanted),
        first=start + 1,
        last=last,
        total=found.total,
        previous_url=url(page=found.number - 1) if found.number > 1 else "",
        next_url=url(page=found.number + 1) if last < found.total else "",
        clear_url=path,
        json_url=f"{path}?{'&'.join(filter(None, (query_of(wanted, page=1), 'format=json')))}",
    )


def _kind_chips(wanted: LeaseFilter, found: FoundLeases, url: Any) -> tuple[Chip, ...]:
    """The kinds, of which one is on, or all."""
    phases = wanted.phases or tuple(Phase)
    counts = {k: sum(found.counts.get(k, {}).get(p, 0) for p in phases) for k in Kind}
    of = [phase.value for phase in wanted.phases]
    whole = _counted_live(wanted, of or ["total"])
    every = Chip("", "All", sum(counts.values()), url(kinds=()), not wanted.kinds, whole)
    chips = (
        Chip(
            k.value,
            KIND_LABELS[k],
            n,
            url(kinds=(k,)),
            k in wanted.kinds,
            _counted_live(wanted, [f"{k.value}.{phase}" for phase in of] or [k.value]),
        )
        for k, n in counts.items()
        if n or k in wanted.kinds
    )
    return (every, *chips)


def _phase_chips(wanted: LeaseFilter, found: FoundLeases, url: Any) -> tuple[Chip, ...]:
    """The phases, of which any may be on."""
    kinds = wanted.kinds or tuple(Kind)
    chips = []
    for phase in Phase:
        on = phase in wanted.phases
        others = tuple(p for p in wanted.phases if p is not phase)
        target = url(phases=others if on else (*others, phase))
        number = sum(found.counts.get(kind, {}).get(phase, 0) for kind in kinds)
        live = _counted_live(wanted, [f"{k.value}.{phase.value}" for k in wanted.kinds] or [phase])
        chips.append(Chip(phase.value, phase.value.capitalize(), number, target, on, live))
    return tuple(chips)


def _counted_live(wanted: LeaseFilter, names: Sequence[str]) -> str:
    """The live number of a count, if it counts the whole cluster."""
    whole = not (wanted.namespace or wanted.searches)
    return str(names[0]) if whole and len(names) == 1 else ""


def _heads(wanted: LeaseFilter, url: Any) -> tuple[Head, ...]:
    def head(column: str, label: str, css: str = "", second: Head | None = None) -> Head:
        mine = wanted.column == column
        order = ("descending" if wanted.descending else "ascending") if mine else ""
        turned = f"-{column}" if order == "ascending" else column
        return Head(label, url(sort=turned), order, css, second)

    return (
        head("state", "State", "c-state"),
        head("name", "Lease", second=head("namespace", "Namespace")),
        head("kind", "Kind", "c-kind"),
        head("holder", "Holder", "c-hold"),
        head("held", "Held for", "c-held num"),
        head("renewed", "Last renewed", "c-fresh"),
        head("changes", "Changes, 24 h", "c-spark"),
        head("transitions", "Transitions", "c-n num"),
    )


def _kept(wanted: LeaseFilter) -> tuple[tuple[str, str], ...]:
    pairs = [("kind", kind.value) for kind in wanted.kinds]
    pairs += [("phase", phase.value) for phase in wanted.phases]
    if wanted.sort != WORST_FIRST:
        pairs.append(("sort", wanted.sort))
    return tuple(pairs)


def _clears(wanted: LeaseFilter, url: Any) -> tuple[Chip, ...]:
    """Links that clear one filter of an empty list, the most likely first."""
    ways = (
        ("text", wanted.text, ""),
        ("namespace", wanted.namespace, ""),
        ("labels", wanted.labels, ""),
        ("holder", wanted.holder, ""),
        ("phases", wanted.phases, ()),
        ("kinds", wanted.kinds, ()),
    )
    words = {"phases": "state", "kinds": "kind"}
    return tuple(
        Chip(field, words.get(field, field), 0, url(**{field: empty}), False)
        for field, value, empty in ways
        if value
    )[:2]


def says(wanted: LeaseFilter) -> str:
    """The filter in words, or ""."""
    said = []
    if wanted.phases:
        said.append(f"state is {' or '.join(phase.value for phase in wanted.phases)}")
    if wanted.kinds:
        said.append(f"kind is {' or '.join(kind.value for kind in wanted.kinds)}")
    if wanted.namespace:
        said.append(f"namespace is {wanted.namespace}")
    if wanted.holder:
        said.append(f"holder is {wanted.holder}")
    if wanted.labels:
        said.append(f"labels match {wanted.labels}")
    if wanted.text:
        said.append(f"name or holder contains “{wanted.text}”")
    return capitalized(", ".join(said))
