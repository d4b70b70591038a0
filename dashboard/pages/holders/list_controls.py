"""The controls of the Holders page: key figures, choices, pager, and the words for an empty
list.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from dashboard.parts.formatting import capitalized, counted, percent, thousands, when
from dashboard.parts.frame.list_controls import KIND_LABELS, Chip, Head
from dashboard.parts.holder_name import holder_view
from dashboard.parts.kept.holdings import Figures, FoundHolders
from dashboard.parts.key_figures import Kpi, unread
from dashboard.parts.query.holder_filter import (
    DOWN,
    HOST,
    IDENTITY,
    KINDS,
    NAME,
    NOW,
    PAGE_SIZE,
    PAST,
    RANGES,
    TERMS,
    USUAL_RANGE,
    HolderFilter,
)
from dashboard.parts.query.holder_parameter import part_of
from dashboard.parts.query.time_range import range_label


class Choices(msgspec.Struct, frozen=True):
    """Choices of which one is on."""

    label: str
    all: list[Chip]


class HolderBoard(msgspec.Struct, frozen=True, kw_only=True):
    """`kept` are the parameters that the search form must keep; `cut` says that history was not
    read to the beginning of the range.
    """

    text: str
    choices: tuple[Choices, ...]
    heads: tuple[Head, ...]
    kept: tuple[tuple[str, str], ...]
    kpis: tuple[Kpi, ...]
    lane_title: str
    cut: str
    nodes: int
    says: str
    first: int
    last: int
    total: int
    previous_url: str
    next_url: str
    clear_url: str
    json_url: str


def holder_query(wanted: HolderFilter, **changes: Any) -> str:
    """The query string of a filter, without default values."""
    wanted = msgspec.structs.replace(wanted, **changes)
    pairs = [("q", wanted.text), ("holds", wanted.holds)]
    pairs += [("kind", kind.value) for kind in wanted.kinds]
    pairs += [("group", wanted.group if wanted.group != HOST else "")]
    pairs += [("range", wanted.range if wanted.range != USUAL_RANGE else "")]
    pairs += [("sort", wanted.sort if wanted.sort != DOWN else "")]
    pairs += [("limit", str(wanted.limit) if wanted.limit != PAGE_SIZE else "")]
    pairs += [("page", str(wanted.page) if wanted.page > 1 else "")]
    return urlencode([(name, value) for name, value in pairs if value])


class _Links:
    """Makes the page's URLs, each with another choice."""

    def __init__(self, path: str, wanted: HolderFilter) -> None:
        self.path = path
        self.wanted = wanted

    def url(self, **changes: Any) -> str:
        query = holder_query(self.wanted, **{"page": 1, **changes})
        return f"{self.path}?{query}" if query else self.path

    def choice(self, label: str, field: str, value: Any) -> Chip:
        on = getattr(self.wanted, field) == value
        return Chip(str(value), label, 0, self.url(**{field: value}), on)

    def head(self, column: str, label: str) -> Head:
        on, descending = self.wanted.column == column, self.wanted.descending
        turned = f"-{column}" if on and not descending else column
        word = "descending" if descending else "ascending"
        return Head(label, self.url(sort=turned), word if on else "")


def holder_board(
    path: str, wanted: HolderFilter, found: FoundHolders, now: datetime, *, known: bool
) -> HolderBoard:
    """Make the controls; `path` is the page's own. Without `known`, no list was read yet."""
    links = _Links(path, wanted)
    first = (found.number - 1) * wanted.limit + 1 if found.page else 0
    last = first + len(found.page) - 1 if found.page else 0
    begin = now - RANGES[wanted.range]
    figures = _kpis(links.url, wanted, found.figures)
    return HolderBoard(
        text=wanted.text,
        choices=_choices(links),
        heads=tuple(
            links.head(column, label)
            for column, label in ((NAME, "Holder"), (DOWN, "Takes down"), (TERMS, "Terms"))
        ),
        kept=tuple(pair for pair in _pairs(wanted) if pair[0] != "q"),
        kpis=figures if known else tuple(map(unread, figures)),
        lane_title=f"Terms, last {range_label(wanted.range)}",
        cut=_cut(found.since, now) if found.since > begin else "",
        nodes=found.figures.nodes,
        says=_says(wanted),
        first=first,
        last=last,
        total=found.total,
        previous_url=links.url(page=found.number - 1) if found.number > 1 else "",
        next_url=links.url(page=found.number + 1) if last < found.total else "",
        clear_url=path,
        json_url=f"{path}?{urlencode([*_pairs(wanted), ('format', 'json')])}",
    )


def _choices(links: _Links) -> tuple[Choices, ...]:
    groups = ((HOST, "By host or pod"), (IDENTITY, "By identity"))
    holds = (("", "All"), (NOW, "Hold now"), (PAST, "Held before"))
    kinds = [links.choice(KIND_LABELS[kind], "kinds", (kind,)) for kind in KINDS]
    ranges = [links.choice(range_label(name), "range", name) for name in RANGES]
    return (
        Choices("Group", [links.choice(label, "group", value) for value, label in groups]),
        Choices("Which", [links.choice(label, "holds", value) for value, label in holds]),
        Choices("Kind", [links.choice("All kinds", "kinds", ()), *kinds]),
        Choices("Range", ranges),
    )


def _cut(since: datetime, now: datetime) -> str:
    return f"More happened than is read at once: terms before {when(since, now)} are left out"


def _pairs(wanted: HolderFilter) -> list[tuple[str, str]]:
    return parse_qsl(holder_query(wanted, page=1))


def _kpis(url: Any, wanted: HolderFilter, figures: Figures) -> tuple[Kpi, ...]:
    largest = figures.largest
    view = holder_view(largest.name) if largest else None
    down = largest.takes_down if largest else 0
    share = f", {percent(down, figures.held)}" if figures.held else ""
    stranded = figures.stranded
    return (
        Kpi(
            label="Largest holder",
            value=((view.short if view else "none", ""),),
            detail=f"{thousands(down)} of {counted(figures.held, 'held Lease')}{share}",
            url=url(text=part_of(largest.name) if largest else "", holds=""),
        ),
        Kpi(
            label="Holders now",
            value=((thousands(figures.holders_now), ""),),
            detail=f"of {thousands(figures.holders)} seen in {range_label(wanted.range)}",
            url=url(text="", holds=NOW),
        ),
        Kpi(
            label="Held by a dead node",
            value=((thousands(stranded), ""),),
            detail="by the node's name; Pods are not read",
            url=url(text="", holds=NOW),
            phase="expired" if stranded else "",
            bad=bool(stranded),
        ),
        Kpi(
            label="Only ever one host",
            value=((thousands(figures.single), ""),),
            detail=f"held Leases without another in {range_label(wanted.range)}",
            url=url(text="", holds=NOW),
        ),
    )


def _says(wanted: HolderFilter) -> str:
    said = []
    if wanted.text:
        said.append(f"contains {wanted.text}")
    if wanted.kinds:
        said.append(f"kind is {' or '.join(wanted.kinds)}")
    if wanted.holds:
        said.append("holds something now" if wanted.holds == NOW else "holds nothing now")
    return capitalized(", ".join(said))
