"""The lanes as rows of text, for screen readers and for copying."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.charts.lane_geometry import Shape, shapes
from dashboard.charts.time_scale import Scale
from dashboard.pages.timeline.drawn_lanes import as_of_view, shapes_of_each
from dashboard.pages.timeline.lane_query import Lanes, TimelineLane
from dashboard.parts.formatting import age, counted, when
from dashboard.parts.frame.stretch_links import Zoom
from dashboard.parts.holder_name import shown_holder
from dashboard.parts.lane_labels import among, how_ended, until_when
from dashboard.parts.lease.page_links import ShownTime, lease_url_at


def table_rows(
    cluster: str,
    lanes: Lanes,
    scale: Scale,
    *,
    now: datetime,
    time: ShownTime,
    zoom: Zoom,
    end: datetime | None = None,
) -> list[dict[str, Any]]:
    """The shapes of all lanes in words; `zoom` and `end` as in shape_view."""
    rows: list[dict[str, Any]] = []
    most = shapes_of_each(len(lanes.page))
    for lane in lanes.page:
        drawn = shapes(lane.life, scale, busy=lane.busy, most=most)
        url = lease_url_at(cluster, lane.key, time)
        rows += _of_lane(url, lane, drawn, now, zoom, end)
    return rows


def _of_lane(
    url: str,
    lane: TimelineLane,
    drawn: tuple[Shape, ...],
    now: datetime,
    zoom: Zoom,
    end: datetime | None,
) -> list[dict[str, Any]]:
    at = as_of_view(lane.standing, now, watched=lane.watched)
    head = {
        "lease": str(lane.key),
        "url": url,
        "as_of": f"at the playhead: {at.holder.identity if at.holder else at.word}",
        "rows": max(1, len(drawn)),
    }
    if not drawn:
        return [head | {"holder": "nothing known"}]
    rows = [_words(shape, now, zoom, end) for shape in drawn]
    return [head | rows[0], *rows[1:]]


def _words(shape: Shape, now: datetime, zoom: Zoom, end: datetime | None) -> dict[str, Any]:
    """The words of one shape; a term or gap is shown whole, also outside the stretch."""
    cut = shape.term is not None and shape.term.gaps  # a part of its term, between gaps
    whole = shape.gap or (None if cut else shape.term)
    since = whole.since if whole else shape.since
    until = whole.until if whole else shape.until
    length = age(((until or end or now) - since).total_seconds())
    if shape.term is not None:
        holder, note = shown_holder(shape.term.holder), how_ended(shape.term)
    elif shape.gap is not None:
        holder, note = "no holder", ""
    else:
        holder, note = counted(shape.changes, "change"), among(shape)
    return {
        "holder": holder,
        "since": when(since, now),
        "until": until_when(until, now, end),
        "length": length,
        "note": note,
        "bad": shape.gap is not None,
        "zoom_url": zoom(shape.since, shape.until) if shape.changes else "",
    }
