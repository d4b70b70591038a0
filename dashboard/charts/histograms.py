"""Histograms: the ages of heartbeats, and the intervals between renewals.

Widths are percent. Heights are pixels on a logarithmic scale, so that three late Leases show beside
130,000.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from dashboard.charts.lanes import Fog, fog
from dashboard.charts.time_axis import Scale, Tick, percent, ticks
from leases.domain.phase import Phase

SPANS = 60  # bars
WHOLE = 1.5  # durations on the axis
TOP, FLOOR = 18.0, 94.0
MIN_HEIGHT = 5.0  # pixels of a bar of one
LABEL = 12.0  # pixels of a number at the axis
LEVELS = 7  # powers of ten that have a line, up to a million
SHOWN = (Phase.HELD, Phase.LATE, Phase.EXPIRED)
USUAL_DURATION = 40.0  # seconds, the kubelet's; used if no heartbeat has a duration


class AgeBar(msgspec.Struct, frozen=True):
    """The Leases of one span of ages, coloured by their most frequent phase."""

    x: float
    width: float
    y: float
    height: float
    phase: str
    title: str


class AgesChart(msgspec.Struct, frozen=True):
    """`limit` is where the usual duration ends, `beyond` the width after it; both in percent.
    `levels` are the lines of the vertical axis, which is logarithmic: y and number.
    """

    bars: tuple[AgeBar, ...]
    levels: tuple[tuple[float, int], ...]
    labels: tuple[tuple[float, str, str], ...]  # x, text, CSS class that aligns it
    counts: tuple[tuple[str, int], ...]
    limit: float
    beyond: float
    finding: str


Ages = Mapping[tuple[int, Phase], int]


def spans(ages: Mapping[Phase, Counter[float]], duration: float) -> Counter[tuple[int, Phase]]:
    """`ages`: how many have each age, in seconds."""
    per_second = SPANS / (WHOLE * duration)
    found: Counter[tuple[int, Phase]] = Counter()
    for phase, some in ages.items():
        for age, number in some.items():
            found[min(SPANS - 1, max(0, int(age * per_second))), phase] += number
    return found


def ages_chart(found: Ages, duration: float, *, of: str) -> AgesChart:
    """Draw the counts of `spans`; `of` names the counted things."""
    step = 100 / SPANS
    by_span: dict[int, dict[Phase, int]] = {}
    for (span, phase), number in sorted(found.items()):
        by_span.setdefault(span, {})[phase] = number
    most = max((sum(phases.values()) for phases in by_span.values()), default=1)
    bars = []
    for span, phases in by_span.items():
        height = _height(sum(phases.values()), most)
        bars.append(
            AgeBar(
                x=round(span * step + 0.15, 2),
                width=round(step - 0.3, 2),
                y=round(FLOOR - height, 1),
                height=round(height, 1),
                phase=max(phases, key=lambda phase: phases[phase]).value,
                title=_title(span, phases, duration),
            )
        )
    counts = tuple(
        (phase.value, sum(n for (_, p), n in found.items() if p is phase)) for phase in SHOWN
    )
    said = ", ".join(f"{number:,} {word}" for word, number in counts)
    total = sum(found.values())
    finding = f"Age of the last renewal of {total:,} {of}: {said}"
    limit = round(100 / WHOLE, 2)
    levels = tuple((round(FLOOR - _height(one, most), 1), one) for one in _numbers(most) if bars)
    return AgesChart(tuple(bars), levels, _labels(duration), counts, limit, 100 - limit, finding)


def _numbers(most: int) -> list[int]:
    """Powers of ten, and `most` if its number has room above the last of them."""
    powers = [10**power for power in range(LEVELS) if 10**power <= most]
    roomy = _height(most, most) - _height(powers[-1], most) > LABEL
    return [*powers, most] if roomy else powers


def _height(number: int, most: int) -> float:
    """Pixels of so many: one is MIN_HEIGHT, `most` reaches the top."""
    return MIN_HEIGHT + (FLOOR - TOP - 4 - MIN_HEIGHT) * math.log(number) / math.log(max(most, 2))


def _title(span: int, phases: Mapping[Phase, int], duration: float) -> str:
    width = WHOLE * duration / SPANS
    until = f"{(span + 1) * width:g} s" if span < SPANS - 1 else "more"
    said = ", ".join(f"{number:,} {phase.value}" for phase, number in phases.items())
    return f"{span * width:g} s to {until}: {said}"


def _labels(duration: float) -> tuple[tuple[float, str, str], ...]:
    """Labels at quarters of the duration and at the open end."""
    quarters = range(1, 5)
    return (
        (0, "0 s", ""),
        *(
            (round(quarter * 25 / WHOLE, 2), f"{duration * quarter / 4:g} s", "mid")
            for quarter in quarters
        ),
        (100, f"{WHOLE * duration:g} s and more", "end-anchor"),
    )


INTERVALS_TOP, BOTTOM = 10.0, 148.0  # where the highest and the lowest value are drawn
LEFT = 5.0  # percent, for the numbers of the axis
MAX_BARS = 120
_SURE = 1e-6  # rounding error, in bars, of an interval at a bar's edge
_ROOM = 1.12  # above the highest value
_FAR = 8.0  # longest intervals; a longer duration is left out, or it would flatten the bars
_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0)
_MAX_LINES = 4


class IntervalBar(msgspec.Struct, frozen=True, kw_only=True):
    """The longest interval that ended in a stretch; `phase` is what the Lease became in it."""

    x: float
    width: float
    y: float
    height: float
    seconds: float
    since: datetime
    until: datetime
    phase: str


class ScaleLine(msgspec.Struct, frozen=True):
    y: float
    seconds: float


class RenewalChart(msgspec.Struct, frozen=True, kw_only=True):
    """`unknown` is the width in percent of the beginning, which we do not remember."""

    bars: tuple[IntervalBar, ...]
    lines: tuple[ScaleLine, ...]
    ticks: tuple[Tick, ...]
    limit: ScaleLine | None
    usual: ScaleLine | None
    longest: IntervalBar | None
    unknown: float
    fogs: tuple[Fog, ...]


def renewal_chart(
    intervals: Iterable[tuple[datetime, float]],
    scale: Scale,
    *,
    known_since: datetime,
    duration: float | None,
    usual: float | None,
    late_after: float | None,
    bars: int = MAX_BARS,
    blind: Sequence[tuple[datetime, datetime]] = (),
) -> RenewalChart:
    """Draw (end, seconds) intervals inside the scale, and the times `blind` that nobody watched.

    Levels are in seconds.
    """
    found = _merged(intervals, scale, bars)
    longest = max((seconds for _, seconds in found), default=0.0)
    highest = max(longest, usual or 0.0, 0.1)
    near = duration is not None and duration <= _FAR * highest
    if near and duration is not None:
        highest = max(highest, duration)
    unit = (BOTTOM - INTERVALS_TOP) / (highest * _ROOM)
    step = scale.length / bars
    drawn = tuple(
        _bar(slot, seconds, scale, unit, step, _phase(seconds, duration, late_after))
        for slot, seconds in found
    )
    return RenewalChart(
        bars=drawn,
        lines=tuple(_line(level, unit) for level in _levels(highest)),
        ticks=tuple(msgspec.structs.replace(t, x=_place(t.x)) for t in ticks(scale)),
        limit=_line(duration, unit) if near and duration is not None else None,
        usual=None if usual is None else _line(usual, unit),
        longest=max(drawn, key=lambda bar: bar.seconds, default=None),
        unknown=_width(scale.x(known_since)),
        fogs=tuple(
            msgspec.structs.replace(one, x=_place(one.x), width=_width(one.width))
            for one in fog(blind, scale)
        ),
    )


def _merged(
    intervals: Iterable[tuple[datetime, float]], scale: Scale, bars: int
) -> list[tuple[int, float]]:
    """The longest interval of each bar, by the bar's number."""
    longest: dict[int, float] = {}
    for at, seconds in intervals:
        if scale.since <= at < scale.until:
            slot = int(scale.x(at) * bars / 100 + _SURE)
            longest[slot] = max(seconds, longest.get(slot, 0.0))
    return sorted(longest.items())


def _bar(
    slot: int, seconds: float, scale: Scale, unit: float, step: timedelta, phase: str
) -> IntervalBar:
    width = 100 * (step / scale.length)
    height = max(1.0, seconds * unit)
    return IntervalBar(
        x=_place(slot * width),
        width=_width(width * 0.78),
        y=round(BOTTOM - height, 1),
        height=round(height, 1),
        seconds=seconds,
        since=scale.since + slot * step,
        until=scale.since + (slot + 1) * step,
        phase=phase,
    )


def _place(x: float) -> float:
    """Convert a share of the scale to one of the chart, right of the axis."""
    return percent(LEFT + _width(x))


def _width(x: float) -> float:
    return percent(x * (100 - LEFT) / 100)


def _phase(seconds: float, duration: float | None, late_after: float | None) -> str:
    if duration is not None and seconds >= duration:
        return "expired"
    return "late" if late_after is not None and seconds > late_after else "held"


def _line(seconds: float, unit: float) -> ScaleLine:
    return ScaleLine(round(BOTTOM - seconds * unit, 1), seconds)


def _levels(highest: float) -> list[float]:
    """At most _MOST_LINES round levels from 0 to the highest."""
    step = next((step for step in _STEPS if highest / step <= _MAX_LINES), highest / _MAX_LINES)
    return [step * number for number in range(int(highest / step) + 1)]
