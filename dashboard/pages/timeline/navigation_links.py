"""The links of the timeline: each state is a URL, so each choice is a link."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.pages.timeline.lane_order import Chosen, kinds_of
from dashboard.parts.frame.list_controls import KIND_LABELS, Chip
from dashboard.parts.query.lease_filter import PAGE_SIZE
from dashboard.parts.query.time_range import (
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
from dashboard.parts.query.url_time import write_moment
from leases.domain.kind import Kind
from leases.domain.phase import Phase

Counts = dict[Kind, dict[Phase, int]]
Url = Callable[..., str]
ZOOM = 2.0


class TimelineLinks(msgspec.Struct, frozen=True, kw_only=True):
    """A link that is not possible is ""; `closer` and `wider` zoom around the playhead."""

    ranges: tuple[Chip, ...]
    kinds: tuple[Chip, ...]
    sorts: tuple[Chip, ...]
    views: tuple[Chip, ...]
    earlier: str
    later: str
    closer: str
    wider: str
    now: str
    previous: str
    next: str
    clear: str
    json: str


def timeline_query(wanted: TimelineFilter, **changes: Any) -> str:
    """The query string of a filter, without default values. The range has no fixed default."""
    wanted = msgspec.structs.replace(wanted, **changes)
    pairs = [("range", wanted.range)]
    if wanted.since is not None:
        pairs = [("from", write_moment(wanted.since)), ("to", write_moment(wanted.until))]
    pairs += [("at", write_moment(wanted.at)), ("q", wanted.text)]
    pairs += [("kind", kind.value) for kind in wanted.kinds]
    pairs += [("sort", wanted.sort)] if wanted.sort != WORST_FIRST else []
    pairs += [("view", wanted.view)] if wanted.view != LANES else []
    pairs += [("limit", str(wanted.limit))] if wanted.limit != PAGE_SIZE else []
    pairs += [("page", str(wanted.page))] if wanted.page > 1 else []
    return urlencode([pair for pair in pairs if pair[1]])


def timeline_links(
    path: str,
    wanted: TimelineFilter,
    shown: TimeRange,
    *,
    now: datetime,
    counts: Counts,
    chosen: Chosen,
) -> TimelineLinks:
    """Make all links; `path` is the page's own."""

    def url(**changes: Any) -> str:
        query = timeline_query(wanted, **{"page": 1, **changes})
        return f"{path}?{query}" if query else path

    more = chosen.number * wanted.limit < chosen.total
    return TimelineLinks(
        ranges=_ranges(wanted, url),
        kinds=_kinds(wanted, counts, url),
        sorts=_choices(wanted.sort, "sort", {WORST_FIRST: "Worst first", BY_NAME: "By name"}, url),
        views=_choices(wanted.view, "view", {LANES: "Lanes", TABLE: "Table"}, url),
        earlier=url(**_moved(shown, now, -0.5)),
        later="" if shown.live else url(**_moved(shown, now, 0.5)),
        closer=_zoomed(shown, now, 1 / ZOOM, url),
        wider=_zoomed(shown, now, ZOOM, url),
        now=url(since=None, until=None, at=None),
        previous=url(page=chosen.number - 1) if chosen.number > 1 else "",
        next=url(page=chosen.number + 1) if more else "",
        clear=path,
        json=f"{path}?{'&'.join(filter(None, (timeline_query(wanted), 'format=json')))}",
    )


def _ranges(wanted: TimelineFilter, url: Url) -> tuple[Chip, ...]:
    fixed = wanted.since is not None
    return tuple(
        Chip(name, range_label(name), 0, url(range=name, since=None, until=None), on)
        for name in RANGES
        for on in (not fixed and wanted.range == name,)
    )


def _kinds(wanted: TimelineFilter, counts: Counts, url: Url) -> tuple[Chip, ...]:
    """The kinds that have Leases, of which one is on."""
    on = kinds_of(wanted)
    numbers = {kind: sum(counts.get(kind, {}).values()) for kind in Kind}
    return tuple(
        Chip(
            kind.value,
            KIND_LABELS[kind],
            numbers[kind],
            url(kinds=() if kind is Kind.ELECTION else (kind,)),
            kind in on,
        )
        for kind in Kind
        if numbers[kind] or kind in on
    )


def _choices(chosen: str, field: str, labels: dict[str, str], url: Url) -> tuple[Chip, ...]:
    return tuple(
        Chip(value, label, 0, url(**{field: value}), value == chosen)
        for value, label in labels.items()
    )


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
