"""The controls around a list: chips, column heads, pager; and those of the list of Leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.parts.formatting import capitalized, span_of
from dashboard.parts.lease_filter import RANGES, FoundLeases, LeaseFilter
from dashboard.parts.url_parameters import ListFilter
from leases.domain.kind import Kind
from leases.domain.phase import Phase

KIND_LABELS = {
    Kind.ELECTION: "Elections",
    Kind.HEARTBEAT: "Heartbeats",
    Kind.IDENTITY: "Identities",
    Kind.LOCK: "Locks",
    Kind.UNKNOWN: "Unknown",
}


class Chip(msgspec.Struct, frozen=True):
    """One choice; a live frame replaces its count under the name `live`, unless that is ""."""

    value: str
    label: str
    url: str
    on: bool = False
    count: int = 0
    live: str = ""


class Head(msgspec.Struct, frozen=True):
    """A column head; `sorted` is "ascending", "descending" or ""; `second` is in the same cell."""

    label: str
    url: str
    sorted: str
    css: str = ""
    second: Head | None = None


class Pager(msgspec.Struct, frozen=True):
    first: int
    last: int
    total: int
    previous_url: str
    next_url: str


class ListLinks:
    """The links of a list: `path` is that of its page."""

    def __init__(self, path: str, wanted: ListFilter) -> None:
        self.path, self.wanted = path, wanted

    def url(self, **changes: Any) -> str:
        """The list with another choice, from its first page on."""
        query = self.wanted.replace(**{"page": 1, **changes}).query()
        return f"{self.path}?{query}" if query else self.path

    def json_url(self, **changes: Any) -> str:
        pairs = self.wanted.replace(**changes).pairs()
        return f"{self.path}?{urlencode([*pairs, ('format', 'json')])}"

    def chip(self, label: str, field: str, value: Any, **changes: Any) -> Chip:
        """The choice of one value."""
        on = getattr(self.wanted, field) == value
        return Chip(str(value), label, self.url(**{field: value}, **changes), on)

    def head(self, column: str, label: str, css: str = "", second: Head | None = None) -> Head:
        on, descending = self.wanted.column == column, self.wanted.descending
        turned = f"-{column}" if on and not descending else column
        word = "descending" if descending else "ascending"
        return Head(label, self.url(sort=turned), word if on else "", css, second)

    def pager(self, number: int, total: int) -> Pager:
        last = number * self.wanted.limit
        return Pager(
            first=last - self.wanted.limit + 1,
            last=min(last, total),
            total=total,
            previous_url=self.url(page=number - 1) if number > 1 else "",
            next_url=self.url(page=number + 1) if last < total else "",
        )

    def kept(self, *names: str) -> list[tuple[str, str]]:
        """The parameters that a form has no field for."""
        return [(name, value) for name, value in self.wanted.pairs() if name in names]


class LeaseLinks(ListLinks):
    """The links of the list of Leases, also of that as of an instant."""

    wanted: LeaseFilter

    def kinds(self) -> list[Chip]:
        """All kinds, or one."""
        on = self.wanted.kinds
        every = Chip("", "All", self.url(kinds=()), not on)
        return [
            every,
            *(Chip(k.value, KIND_LABELS[k], self.url(kinds=(k,)), k in on) for k in Kind),
        ]

    def phase(self, phase: Phase, count: int, live: str = "") -> Chip:
        """One of the phases, of which any may be on."""
        on = phase in self.wanted.phases
        others = tuple(p for p in self.wanted.phases if p is not phase)
        url = self.url(phases=others if on else (*others, phase))
        return Chip(phase.value, phase.value.capitalize(), url, on, count, live)

    def abandoned(self, count: int, live: str = "") -> Chip:
        """Nothing but abandoned Leases, or all again."""
        on = self.wanted.abandoned == "true"
        url = self.url(abandoned="" if on else "true")
        return Chip("abandoned", "Abandoned", url, on, count, live)


def board(
    path: str, wanted: LeaseFilter, found: FoundLeases, namespaces: Sequence[str]
) -> dict[str, Any]:
    """Make the controls; `path` is the page's own."""
    links = LeaseLinks(path, wanted)
    return {
        "wanted": wanted,
        "namespaces": namespaces,
        "kinds": _kind_chips(links, found),
        "phases": [
            *_phase_chips(links, found.counts),
            _flapping_chip(links, found.flapping),
            _abandoned_chip(links, found.abandoned),
        ],
        "heads": _heads(links),
        "ranges": _ranges(links),
        "kept": links.kept("kind", "phase", "flapping", "abandoned", "sort", "range"),
        "clears": _clears(links),
        "says": says(wanted),
        "pager": links.pager(found.number, found.total),
        "clear_url": path,
        "json_url": links.json_url(page=1),
    }


def _kind_chips(links: LeaseLinks, found: FoundLeases) -> list[Chip]:
    """The kinds that have Leases, with counts."""
    wanted, phases = links.wanted, links.wanted.wanted_phases
    counts = {
        kind.value: sum(found.counts.get(kind, {}).get(p, 0) for p in phases) for kind in Kind
    }
    if wanted.flapping:
        for kind, some in found.flapping.items():
            counts[kind.value] += sum(some[p] for p in some if p not in phases)
    counts[""] = sum(counts.values())
    of = [phase.value for phase in wanted.phases]
    chips = []
    for chip in links.kinds():
        if counts[chip.value] or chip.on or not chip.value:
            names = [f"{chip.value}.{phase}" for phase in of] if chip.value else of
            live = _counted_live(wanted, names or [chip.value or "total"])
            live = "" if wanted.flapping else live
            chips.append(msgspec.structs.replace(chip, count=counts[chip.value], live=live))
    return chips


def _phase_chips(links: LeaseLinks, found: Mapping[Kind, Mapping[Phase, int]]) -> list[Chip]:
    wanted = links.wanted
    chips = []
    for phase in Phase:
        number = sum(found.get(kind, {}).get(phase, 0) for kind in wanted.kinds or Kind)
        live = _counted_live(wanted, [f"{kind}.{phase}" for kind in wanted.kinds] or [phase])
        chips.append(links.phase(phase, number, live))
    return chips


def _flapping_chip(links: LeaseLinks, found: Mapping[Kind, Mapping[Phase, int]]) -> Chip:
    """One more choice beside the phases: a Lease that flaps has any of them."""
    wanted = links.wanted
    number = sum(sum(found.get(kind, {}).values()) for kind in wanted.kinds or Kind)
    live = "" if wanted.kinds else _counted_live(wanted, ["flapping"])
    url = links.url(flapping=not wanted.flapping)
    return Chip("flapping", "Flapping", url, wanted.flapping, number, live)


def _abandoned_chip(links: LeaseLinks, found: Mapping[Kind, Mapping[Phase, int]]) -> Chip:
    wanted = links.wanted
    number = sum(sum(found.get(kind, {}).values()) for kind in wanted.kinds or Kind)
    live = "" if wanted.kinds else _counted_live(wanted, ["abandoned"])
    return links.abandoned(number, live)


def _ranges(links: LeaseLinks) -> list[Chip]:
    """In which time the sort by changes counts."""
    if links.wanted.column != "changes":
        return []
    return [links.chip(span_of(length), "range", name) for name, length in RANGES.items()]


def _counted_live(wanted: LeaseFilter, names: Sequence[str]) -> str:
    """The live number of a count, if it counts the whole cluster."""
    whole = not (wanted.namespace or wanted.searches)
    return str(names[0]) if whole and len(names) == 1 else ""


def _heads(links: LeaseLinks) -> list[Head]:
    return [
        links.head("state", "State", "c-state"),
        links.head("name", "Lease", second=links.head("namespace", "Namespace")),
        links.head("kind", "Kind", "c-kind"),
        links.head("holder", "Holder", "c-hold"),
        links.head("held", "Held for", "c-held num"),
        links.head("renewed", "Last renewed", "c-fresh"),
        links.head("changes", "Changes, 24 h", "c-spark"),
        links.head("transitions", "Transitions", "c-n num"),
    ]


def _clears(links: LeaseLinks) -> list[Chip]:
    """Links that clear one filter of an empty list, the most likely first."""
    usual, words = LeaseFilter(), {"phases": "state", "kinds": "kind"}
    fields = ("text", "namespace", "labels", "holder", "phases", "flapping", "abandoned", "kinds")
    return [
        links.chip(words.get(field, field), field, getattr(usual, field))
        for field in fields
        if getattr(links.wanted, field)
    ][:2]


def says(wanted: LeaseFilter) -> str:
    """The filter in words, or ""."""
    words = {
        "state is": " or ".join((*wanted.phases, *(["flapping"] if wanted.flapping else []))),
        "kind is": " or ".join(wanted.kinds),
        "namespace is": wanted.namespace,
        "holder is": wanted.holder,
        "labels match": wanted.labels,
        "name or holder contains": wanted.text and f"“{wanted.text}”",
        "abandoned is": wanted.abandoned,
    }
    return capitalized(", ".join(f"{what} {value}" for what, value in words.items() if value))
