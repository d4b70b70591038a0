"""Read from a URL which stretch of a Lease's past is wanted, and link to others."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.http import QueryDict

from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.frame.stretch_links import Zoom, stretch_links, zoom_to
from dashboard.parts.lease.page_links import ShownTime, shown_time
from dashboard.parts.query.time_range import StretchFilter, TimeRange, read_stretch, window
from dashboard.parts.query.url_parameters import BadFilter


class LeaseStretch(StretchFilter, frozen=True, kw_only=True):
    """The page has no playhead: `instant` is the moment of the whole page; None means now.

    `before` is the cursor of the list of changes.
    """

    PARAMETERS = {"instant": "at", "since": "from", "until": "to", "before": "before"}
    instant: datetime | None = None
    before: str = ""


class LeasePastLinks(msgspec.Struct, frozen=True, kw_only=True):
    """The shown stretch of a Lease's past; `choices` are the links to others."""

    shown: TimeRange
    links: ListLinks
    choices: dict[str, Any]
    zoom: Zoom
    time: ShownTime


def read_lease_stretch(
    query: QueryDict, now: datetime, usual: str, *, instant: datetime | None = None
) -> LeaseStretch:
    """Raises BadFilter."""
    name, since, until = read_stretch(query, now, usual)
    if instant and since and since >= instant:
        raise BadFilter("from must be earlier than at.")
    return LeaseStretch(
        range=name, since=since, until=until, instant=instant, before=query.get("before", "")
    )


def past_links(
    path: str, wanted: LeaseStretch, now: datetime, *, watched: datetime | None
) -> LeasePastLinks:
    """`now` is the end of all that is shown; a fixed stretch zooms around its middle."""
    shown = window(wanted, now, watched=watched)
    if not shown.live:
        shown = msgspec.structs.replace(shown, at=shown.since + shown.length / 2)
    links = ListLinks(path, wanted)
    return LeasePastLinks(
        shown=shown,
        links=links,
        choices=stretch_links(links, wanted, shown, now=now),
        zoom=zoom_to(links, shown, now=now),
        time=shown_time(shown, wanted.range, wanted.instant),
    )
