"""A strip of bars that counts changes over time; each bar links to its stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from dashboard.charts.count_bars import CountBar, bars
from dashboard.charts.lane_geometry import fog
from dashboard.charts.time_scale import Scale
from dashboard.charts.time_ticks import ticks
from dashboard.parts.formatting import age, counted, span_of, when
from leases.domain.past.watched_times import UnwatchedTime


def strip_view(
    counts: Sequence[int | None],
    since: datetime,
    step: timedelta,
    *,
    now: datetime,
    url: Callable[[datetime, datetime], str],
    length: timedelta | None = None,
    what: str = "change",
    blind: Sequence[UnwatchedTime] = (),
) -> dict[str, Any]:
    """Draw a bar for every count; `url` makes the link of a stretch.

    `length` is the stretch that was asked for, if it is no whole number of steps. `what` names one
    counted thing. In the times of `blind` nobody watched, so nothing was counted.
    """
    until = since + step * len(counts)
    drawn = bars(counts, since, step)
    return {
        "bars": [
            (bar, _title(bar, now), url(bar.since, bar.until) if bar.count else "") for bar in drawn
        ],
        "ticks": ticks(Scale(since, until), most=7),
        "since": since.timestamp(),
        "until": until.timestamp(),
        "length": span_of(until - since),
        "step": span_of(step),
        "total": sum(count or 0 for count in counts),
        "fogs": fog(((one.since, one.until) for one in blind), Scale(since, until)),
        "says": _says(drawn, length or until - since, step, now, what) + _unseen(blind),
    }


def _unseen(blind: Sequence[UnwatchedTime]) -> str:
    total = sum(one.seconds for one in blind)
    return f"; nobody watched for {age(total)} of it" if total else ""


def _title(bar: CountBar, now: datetime) -> str:
    if bar.count is None:
        return f"from {_begin(bar, now)}: not counted yet"
    return f"{counted(bar.count, 'change')} from {_begin(bar, now)}"


def _begin(bar: CountBar, now: datetime) -> str:
    """When a bar begins, without the seconds at a full minute."""
    return when(bar.since, now).removesuffix(":00")


def _says(
    drawn: Sequence[CountBar], length: timedelta, step: timedelta, now: datetime, what: str
) -> str:
    numbers = [(bar.count, bar) for bar in drawn if bar.count is not None]
    total = sum(number for number, _ in numbers)
    least = "" if len(numbers) == len(drawn) else "at least "
    last = "the last " if drawn and drawn[-1].until >= now else ""
    said = f"{least}{counted(total, what)} in {last}{span_of(length)}"
    if not total:
        return said
    most, bar = max(numbers, key=lambda one: one[0])
    return f"{said}, most of them at {_begin(bar, now)}: {most:,} in {span_of(step)}"
