"""A strip of bars that counts changes over time; each bar links to its stretch."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from dashboard.charts.bars import CountBar, bars
from dashboard.charts.lanes import fog
from dashboard.charts.time_axis import Scale, ticks
from dashboard.parts.formatting import age, counted, span_of, when
from dashboard.parts.time_range import SHORTEST, TimeRange
from leases.domain.watched_times import UnwatchedTime


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


# Possible lengths with their number of steps, which last from 10 s to 3 d.
_SPANS = {
    timedelta(minutes=10): 60,
    timedelta(hours=1): 60,
    timedelta(hours=6): 72,
    timedelta(days=1): 96,
    timedelta(days=7): 84,
    timedelta(days=30): 90,
    timedelta(days=90): 90,
    timedelta(days=366): 122,
}
_MAX_STEPS = 150
_STEPS = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 10, 60, 600, 3600, 7200, 28800, 86400, 3 * 86400, 14 * 86400, 365 * 86400)
)
_ROOM = 3.5  # the least length, in lengths of what is shown, so that the brush can move
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OverviewStrip(msgspec.Struct, frozen=True):
    """`steps` steps from `since` on."""

    since: datetime
    step: timedelta
    steps: int

    @property
    def scale(self) -> Scale:
        return Scale(self.since, self.since + self.steps * self.step)


def overview_of(
    shown: TimeRange, now: datetime, *, watched: datetime | None = None
) -> OverviewStrip:
    """The shortest length that leaves room beside what is shown.

    It ends now, unless the shown stretch is older than that. It begins at a whole step, so the
    counts of past steps stay the same while time goes on; but not before `watched`, the first
    watched moment, unless the shown stretch does.
    """
    longest = max(_SPANS)
    span = next((span for span in _SPANS if span >= _ROOM * shown.length), longest)
    step = span / _SPANS[span]
    recent = shown.since >= now - span
    end = _next_step(now if recent else min(now, shown.until + (span - shown.length) / 2), step)
    since = end - span
    if watched is not None and shown.since >= watched - SHORTEST:
        since = max(since, _EPOCH + (watched - _EPOCH) // step * step)
    return OverviewStrip(since, step, (end - since) // step)


def _next_step(moment: datetime, step: timedelta) -> datetime:
    """The first whole step not before a moment."""
    return _EPOCH + -((_EPOCH - moment) // step) * step


def strip_of(since: datetime, until: datetime) -> OverviewStrip:
    """Cover a stretch with at most _MAX_STEPS steps, so that each can be seen."""
    step = next((step for step in _STEPS if (until - since) / step <= _MAX_STEPS), _STEPS[-1])
    first = (since - _EPOCH) // step
    steps = min(_MAX_STEPS, -((_EPOCH - until) // step) - first)
    return OverviewStrip(_EPOCH + first * step, step, max(1, steps))
