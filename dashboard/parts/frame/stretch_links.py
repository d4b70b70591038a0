"""The links that choose, move and zoom a stretch of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from dashboard.parts.frame.list_controls import Chip, ListLinks
from dashboard.parts.query.time_range import (
    MAX_RANGE,
    RANGES,
    SHORTEST,
    StretchFilter,
    TimeRange,
    range_label,
)

Zoom = Callable[[datetime, datetime], str]
FACTOR = 2.0
_CLOSEST = timedelta(minutes=1)  # where a band that is longer than a few seconds leads
_AROUND = 1.2  # of a band's length: it is shown with its surroundings
_CLOSER = 0.8  # of the shown length: a smaller step does not look like a zoom
_SECOND = timedelta(seconds=1)


def stretch_links(
    links: ListLinks, wanted: StretchFilter, shown: TimeRange, *, now: datetime
) -> dict[str, Any]:
    """Links to ranges, to the time before and after, and closer or wider around the playhead."""
    chosen = wanted.range if wanted.since is None else ""
    return {
        "ranges": [
            Chip(
                name,
                range_label(name),
                links.url(range=name, since=None, until=None),
                name == chosen,
            )
            for name in RANGES
        ],
        "earlier": _url(links, shown, *_moved(shown, now, -0.5)),
        "later": "" if shown.live else _url(links, shown, *_moved(shown, now, 0.5)),
        "closer": _zoomed(links, shown, now, 1 / FACTOR),
        "wider": _zoomed(links, shown, now, FACTOR),
    }


def zoom_to(links: ListLinks, shown: TimeRange, *, now: datetime) -> Zoom:
    """Make the URL that shows a band of changes alone; "" if that is no closer than now."""

    def zoom(since: datetime, until: datetime) -> str:
        for least in (_CLOSEST, SHORTEST):
            length = max(least, (until - since) * _AROUND)
            if length <= shown.length * _CLOSER:
                break
        else:
            return ""
        end = min(now, since + (until - since) / 2 + length / 2)
        start = (end - length).replace(microsecond=0)
        return _url(links, shown, start, start - (start - end) // _SECOND * _SECOND)

    return zoom


def _url(links: ListLinks, shown: TimeRange, since: datetime, until: datetime) -> str:
    """The URL of a fixed stretch; a playhead outside moves to its end."""
    fixed: dict[str, datetime | None] = {"since": since, "until": until}
    if not since <= shown.at <= until:
        fixed["at"] = None
    return links.url(**fixed)


def _moved(shown: TimeRange, now: datetime, by: float) -> tuple[datetime, datetime]:
    """Move the stretch by a share of its length."""
    until = min(now, shown.until + by * shown.length)
    return until - shown.length, until


def _zoomed(links: ListLinks, shown: TimeRange, now: datetime, by: float) -> str:
    """The URL of the stretch zoomed around the playhead; "" if it cannot be."""
    length = shown.length * by
    if not SHORTEST <= length <= MAX_RANGE:
        return ""
    share = (shown.at - shown.since) / shown.length
    until = min(now, shown.at + length * (1 - share))
    names = [name for name, usual in RANGES.items() if usual == length]
    if shown.follows and names:
        return links.url(range=names[0], since=None, until=None)
    return links.url(since=until - length, until=until)
