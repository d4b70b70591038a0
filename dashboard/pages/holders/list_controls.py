"""The controls of the Holders page: key figures, choices, pager, and words for an empty list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.parts.formatting import capitalized, counted, percent, thousands, when
from dashboard.parts.frame.list_controls import KIND_LABELS, Chip, ListLinks
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
    PAST,
    TERMS,
    HolderFilter,
)
from dashboard.parts.query.holder_parameter import part_of
from dashboard.parts.query.time_range import RANGES, range_label


def holder_board(
    path: str, wanted: HolderFilter, found: FoundHolders, now: datetime, *, known: bool
) -> dict[str, Any]:
    """Make the controls; `path` is the page's own. Without `known`, no list was read yet."""
    links = ListLinks(path, wanted)
    columns = {NAME: "Holder", DOWN: "Takes down", TERMS: "Terms"}
    figures = _kpis(links.url, wanted, found.figures)
    return {
        "text": wanted.text,
        "choices": _choices(links),
        "heads": [links.head(column, label) for column, label in columns.items()],
        "kept": wanted.replace(text="", page=1).pairs(),
        "kpis": figures if known else [unread(figure) for figure in figures],
        "lane_title": f"Terms, last {range_label(wanted.range)}",
        "cut": _cut(found.since, now) if found.since > now - RANGES[wanted.range] else "",
        "nodes": found.figures.nodes,
        "says": _says(wanted),
        "pager": links.pager(found.number, found.total),
        "clear_url": path,
        "json_url": links.json_url(page=1),
    }


def _choices(links: ListLinks) -> list[tuple[str, list[Chip]]]:
    groups = {HOST: "By host or pod", IDENTITY: "By identity"}
    holds = {"": "All", NOW: "Hold now", PAST: "Held before"}
    kinds = [links.chip(KIND_LABELS[kind], "kinds", (kind,)) for kind in KINDS]
    return [
        ("Group", [links.chip(label, "group", value) for value, label in groups.items()]),
        ("Which", [links.chip(label, "holds", value) for value, label in holds.items()]),
        ("Kind", [links.chip("All kinds", "kinds", ()), *kinds]),
        ("Range", [links.chip(range_label(name), "range", name) for name in RANGES]),
    ]


def _cut(since: datetime, now: datetime) -> str:
    return f"More happened than is read at once: terms before {when(since, now)} are left out"


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
