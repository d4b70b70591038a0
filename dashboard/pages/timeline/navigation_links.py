"""The links of the timeline: each state is a URL, so each choice is a link."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from dashboard.pages.timeline.lane_order import USUAL_KINDS, Chosen, kinds_of
from dashboard.parts.frame.list_controls import KIND_LABELS, Chip, ListLinks
from dashboard.parts.query.time_range import (
    BY_CHANGES,
    BY_NAME,
    LANES,
    MAX_RANGE,
    RANGES,
    SHORTEST,
    TABLE,
    WORST_FIRST,
    TimelineFilter,
    TimeRange,
    range_label,
)
from leases.domain.kind import Kind
from leases.domain.phase import Phase

Counts = dict[Kind, dict[Phase, int]]
Url = Callable[..., str]
ZOOM = 2.0


def timeline_links(
    path: str,
    wanted: TimelineFilter,
    shown: TimeRange,
    *,
    now: datetime,
    counts: Counts,
    chosen: Chosen,
) -> dict[str, Any]:
    """Make all links; `path` is the page's own."""
    links = ListLinks(path, wanted)
    sorts = {WORST_FIRST: "Worst first", BY_CHANGES: "Most changes", BY_NAME: "By name"}
    views = {LANES: "Lanes", TABLE: "Table"}
    return {
        "ranges": [
            Chip(
                name,
                range_label(name),
                links.url(range=name, since=None, until=None),
                wanted.since is None and wanted.range == name,
            )
            for name in RANGES
        ],
        "kinds": _kinds(links, wanted, counts),
        "any_holder": links.url(holder=""),
        "sorts": [links.chip(label, "sort", value) for value, label in sorts.items()],
        "views": [links.chip(label, "view", value) for value, label in views.items()],
        "earlier": links.url(**_moved(shown, now, -0.5)),
        "later": "" if shown.live else links.url(**_moved(shown, now, 0.5)),
        "closer": _zoomed(shown, now, 1 / ZOOM, links.url),
        "wider": _zoomed(shown, now, ZOOM, links.url),
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


def _moved(shown: TimeRange, now: datetime, by: float) -> dict[str, datetime | None]:
    """Move the stretch by a share of its length; a playhead outside moves to its end."""
    length = shown.until - shown.since
    until = min(now, shown.until + by * length)
    fixed: dict[str, datetime | None] = {"since": until - length, "until": until}
    if not until - length <= shown.at <= until:
        fixed["at"] = None
    return fixed


def _zoomed(shown: TimeRange, now: datetime, by: float, url: Url) -> str:
    """The URL of the stretch zoomed around the playhead; "" if it cannot be."""
    length: timedelta = (shown.until - shown.since) * by
    if not SHORTEST <= length <= MAX_RANGE:
        return ""
    share = (shown.at - shown.since) / (shown.until - shown.since)
    until = min(now, shown.at + length * (1 - share))
    names = [name for name, usual in RANGES.items() if usual == length]
    if shown.follows and names:
        return url(range=names[0], since=None, until=None)
    return url(since=until - length, until=until)
