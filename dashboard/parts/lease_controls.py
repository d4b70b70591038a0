"""The controls around the list of Leases."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dashboard.lists.controls import Chip, Head, ListLinks
from dashboard.parts.formatting import capitalized, span_of
from dashboard.parts.lease_filter import RANGES, FoundLeases, LeaseFilter
from leases.domain.kind import Kind
from leases.domain.phase import Phase

KIND_LABELS = {
    Kind.ELECTION: "Elections",
    Kind.HEARTBEAT: "Heartbeats",
    Kind.IDENTITY: "Identities",
    Kind.LOCK: "Locks",
    Kind.UNKNOWN: "Unknown",
}


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
    links: LeaseLinks, found: FoundLeases, namespaces: Sequence[str], *, known: bool
) -> dict[str, Any]:
    """Make the controls. Without `known`, no list was read yet."""
    wanted = links.wanted
    phases = [
        *_phase_chips(links, found.counts),
        _flapping_chip(links, found.flapping),
        _abandoned_chip(links, found.abandoned),
    ]
    return {
        "wanted": wanted,
        "namespaces": namespaces,
        "kinds": as_far_as(_kind_chips(links, found), known=known),
        "phases": as_far_as(phases, known=known),
        "heads": _heads(links),
        "ranges": _ranges(links),
        "kept": links.kept("kind", "phase", "flapping", "abandoned", "sort", "range"),
        "clears": _clears(links),
        "says": says(wanted),
        "pager": links.pager(found.number, found.total),
        "clear_url": links.path,
        "json_url": links.url_as("json"),
    }


def as_far_as(chips: Sequence[Chip], *, known: bool) -> list[Chip]:
    """The choices; before the first list, a count is not known."""
    return [one if known else msgspec.structs.replace(one, count=None) for one in chips]


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
        "namespace is": " or ".join(wanted.namespaces),
        "holder is": wanted.holder,
        "labels match": wanted.labels,
        "name or holder contains": wanted.text and f"“{wanted.text}”",
        "abandoned is": wanted.abandoned,
    }
    return capitalized(", ".join(f"{what} {value}" for what, value in words.items() if value))
