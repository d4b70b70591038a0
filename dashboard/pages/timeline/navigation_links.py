"""The links of the timeline: each state is a URL, so each choice is a link."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.pages.timeline.lane_order import USUAL_KINDS, LanePage, kinds_of
from dashboard.parts.frame.list_controls import KIND_LABELS, Chip, ListLinks
from dashboard.parts.frame.stretch_links import stretch_links
from dashboard.parts.query.time_range import (
    BY_CHANGES,
    BY_NAME,
    LANES,
    TABLE,
    WORST_FIRST,
    TimelineFilter,
    TimeRange,
)
from leases.domain.kind import Kind
from leases.domain.phase import Phase

Counts = dict[Kind, dict[Phase, int]]


def timeline_links(
    path: str,
    wanted: TimelineFilter,
    shown: TimeRange,
    *,
    now: datetime,
    counts: Counts,
    chosen: LanePage,
) -> dict[str, Any]:
    """Make all links; `path` is the page's own."""
    links = ListLinks(path, wanted)
    sorts = {WORST_FIRST: "Worst first", BY_CHANGES: "Most changes", BY_NAME: "By name"}
    views = {LANES: "Lanes", TABLE: "Table"}
    return {
        **stretch_links(links, wanted, shown, now=now),
        "kinds": _kinds(links, wanted, counts),
        "any_holder": links.url(holder=""),
        "sorts": [links.chip(label, "sort", value) for value, label in sorts.items()],
        "views": [links.chip(label, "view", value) for value, label in views.items()],
        "now": links.url(since=None, until=None, at=None),
        "pager": links.pager(chosen.number, chosen.total),
        "clear": path,
        "json": links.json_url(),
    }


def _kinds(links: ListLinks, wanted: TimelineFilter, counts: Counts) -> list[Chip]:
    """The kinds that have Leases. Elections are the default, unless a holder is wanted."""
    on, usual = kinds_of(wanted), kinds_of(wanted.replace(kinds=()))
    numbers = {kind: sum(counts.get(kind, {}).values()) for kind in Kind}
    return [
        Chip(
            kind.value,
            KIND_LABELS[kind],
            links.url(kinds=() if usual == (kind,) else (kind,)),
            kind in on,
            numbers[kind],
        )
        for kind in Kind
        if numbers[kind] or kind in (wanted.kinds or USUAL_KINDS)
    ]
