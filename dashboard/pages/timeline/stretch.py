"""The timeline around its lanes: stretch, playhead, axis, and the words for no lanes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dashboard.charts.lane_geometry import fog
from dashboard.charts.time_scale import Scale, percent
from dashboard.charts.time_ticks import ticks
from dashboard.pages.timeline.lane_order import LanePage, kinds_of
from dashboard.parts.formatting import age, capitalized, span_of, when
from dashboard.parts.frame.list_controls import KIND_LABELS
from dashboard.parts.holder_name import shown_holder
from dashboard.parts.query.time_range import TimelineFilter, TimeRange
from dashboard.parts.query.url_time import write_moment
from leases.domain.kind import Kind
from leases.domain.past.watched_times import UnwatchedTime


def stretch_view(
    shown: TimeRange, *, now: datetime, around: Scale, blind: Sequence[UnwatchedTime]
) -> dict[str, Any]:
    """The brush moves in `around`; `blind` was not watched."""
    scale = Scale(shown.since, shown.until)
    return {
        "shown": shown,
        "at_x": percent(scale.x(shown.at)),
        "at_clock": when(shown.at, now),
        "at_text": "" if shown.follows else write_moment(shown.at),
        "at_input": _input(shown, now),
        "from_to": _from_to(shown, now),
        "frame_x": percent(around.x(shown.since)),
        "frame_width": percent(around.x(shown.until) - around.x(shown.since)),
        "ticks": ticks(scale),
        "blind": fog(((one.since, one.until) for one in blind), scale),
        "blind_for": _blind_for(blind),
        "unseen": _unseen(blind, shown),
    }


def timeline_board(wanted: TimelineFilter, chosen: LanePage) -> dict[str, Any]:
    """The words and numbers beside the lanes."""
    kept = ("range", "from", "to", "holder", "kind", "sort", "view")
    return {
        "text": wanted.text,
        "holder": shown_holder(wanted.holder),
        "kept": [pair for pair in wanted.pairs() if pair[0] in kept],
        "total": chosen.total,
        "changed": chosen.changed,
        "noun": _noun(wanted),
        "says": _says(wanted),
    }


def _unseen(blind: Sequence[UnwatchedTime], shown: TimeRange) -> str:
    if not blind:
        return ""
    whole = any(one.covers(shown.since, shown.until) for one in blind)
    return "whole" if whole else "part"


def _blind_for(blind: Sequence[UnwatchedTime]) -> str:
    total = sum(one.seconds for one in blind)
    return age(total) if total else ""


def _input(shown: TimeRange, now: datetime) -> str:
    """The playhead as a person would type it; "" while it follows the clock."""
    if shown.follows:
        return ""
    at = shown.at
    today = at.date() == now.date()
    text = f"{at:%H:%M:%S}" if today else f"{at:%Y-%m-%d %H:%M:%S}"
    return text if at.microsecond == 0 else f"{text}.{at:%f}".rstrip("0")


def _from_to(shown: TimeRange, now: datetime) -> str:
    length = span_of(shown.length)
    if shown.is_young:
        return f"since {when(shown.since, now)}, when watching began"
    if shown.live:
        return f"last {length}"
    return f"{when(shown.since, now)} to {when(shown.until, now)} ({length})"


def _noun(wanted: TimelineFilter) -> str:
    labels = [KIND_LABELS[kind].lower() for kind in kinds_of(wanted)]
    return "Leases" if len(labels) > 1 or wanted.kinds == (Kind.UNKNOWN,) else labels[0]


def _says(wanted: TimelineFilter) -> str:
    """The filter in words."""
    said = f"kind is {' or '.join(kind.value for kind in kinds_of(wanted))}"
    said += f", name contains “{wanted.text}”" if wanted.text else ""
    said += f", holder is {shown_holder(wanted.holder)}" if wanted.holder else ""
    return capitalized(said)
