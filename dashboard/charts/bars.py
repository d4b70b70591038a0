"""Bars that count changes: of a day, of a strip, small enough for a table row."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import msgspec

from dashboard.charts.time_axis import WHOLE, percent

TOP, FLOOR = 16.0, 112.0
LEFT = 5.0  # percent, for the numbers of the axis
UNWATCHED = "not watched"
HOUR = timedelta(hours=1)
Span = tuple[datetime, datetime]
LABELLED = 6  # hours between two labels


class HourBar(msgspec.Struct, frozen=True):
    """One hour. `hit` is the left edge of the full-height area with the tooltip."""

    hit: float
    hit_width: float
    x: float
    width: float
    y: float
    height: float
    since: datetime
    hour: str
    number: int
    label: str
    middle: float
    highest: bool
    blind: str  # "not watched" or "in part not watched"; "" of an hour that was watched

    @property
    def known(self) -> bool:
        """Whether there is a number to draw: none of an hour without a watch and a change."""
        return bool(self.number) or self.blind != UNWATCHED

    @property
    def title(self) -> str:
        changes = f"{self.number:,} {'change' if self.number == 1 else 'changes'}"
        return ", ".join(filter(None, (self.hour, changes if self.known else "", self.blind)))


class HoursChart(msgspec.Struct, frozen=True):
    """`finding` is the chart in words."""

    bars: tuple[HourBar, ...]
    grid: tuple[tuple[float, str], ...]  # y and number of each line
    fog: tuple[tuple[float, float], ...]  # x and width of the unwatched times
    finding: str
    near: datetime  # the hour that the finding names


def hours_chart(
    numbers: Sequence[int], now: datetime, *, what: str, blind: Sequence[Span] = ()
) -> HoursChart:
    """The oldest hour first; `what` names what was counted, `blind` are the unwatched times."""
    step = (100 - LEFT) / len(numbers)
    first = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first -= timedelta(hours=len(numbers) - 1)
    most = max(numbers)
    words = unwatched_hours(blind, now, hours=len(numbers))
    bars = []
    for place, number in enumerate(numbers):
        hour = first + timedelta(hours=place)
        height = round((FLOOR - TOP) * number / most, 1) if number else 1.0
        hit = LEFT + place * step
        marked = hour.hour % LABELLED == 0 or place == len(numbers) - 1
        far = (
            place < len(numbers) - 4 or place == len(numbers) - 1
        )  # no label close to the last one
        bars.append(
            HourBar(
                hit=round(hit, 2),
                hit_width=round(step, 2),
                x=round(hit + step / 8, 2),
                width=round(step * 0.75, 2),
                y=round(FLOOR - height, 1),
                height=height,
                since=hour,
                hour=f"{hour:%H}:00",
                number=number,
                label=f"{hour:%H}:00" if marked and far else "",
                middle=round(hit + step / 2, 2),
                blind=words[place],
                highest=bool(number) and number == most and number not in numbers[place + 1 :],
            )
        )
    fog = tuple(_fog(span, first, step) for span in blind)
    near = next((bar for bar in bars if bar.highest), bars[-1]).since
    return HoursChart(tuple(bars), _grid(most), fog, _finding(bars, what), near)


def unwatched_hours(blind: Sequence[Span], now: datetime, *, hours: int) -> list[str]:
    """UNWATCHED, "in part not watched" or "" of each hour; the last one is that of `now`."""
    last = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return [_unwatched(last - place * HOUR, now, blind) for place in reversed(range(hours))]


def _unwatched(hour: datetime, now: datetime, blind: Sequence[Span]) -> str:
    end = min(hour + HOUR, now)
    parts = [min(until, end) - max(since, hour) for since, until in blind]
    lost = sum((part for part in parts if part > timedelta(0)), timedelta(0))
    if not lost:
        return ""
    return UNWATCHED if lost >= end - hour else f"in part {UNWATCHED}"


def _fog(span: Span, first: datetime, step: float) -> tuple[float, float]:
    since, until = (LEFT + step * ((moment - first) / HOUR) for moment in span)
    return round(since, 2), round(until - since, 2)


def _grid(most: int) -> tuple[tuple[float, str], ...]:
    lines = [(FLOOR, "0")]
    if most > 1:
        half = -(-most // 2)
        lines.append((round(FLOOR - (FLOOR - TOP) * half / most, 1), f"{half:,}"))
    if most:
        lines.append((TOP, f"{most:,}"))
    return tuple(lines)


def _finding(bars: Sequence[HourBar], what: str) -> str:
    total = sum(bar.number for bar in bars)
    blind = sum(bool(bar.blind) for bar in bars)
    said = f"{what} per hour over {len(bars)} h: {total:,} in total"
    highest = next((bar for bar in bars if bar.highest), None)
    said = f"{said}, highest {highest.number:,} at {highest.hour}" if highest else said
    return f"{said}; {blind} h not watched in full" if blind else said


HEIGHT = 30.0  # pixels of the highest bar
_MIN_HEIGHT = 3.0  # pixels of a bar that is not empty
_EMPTY = 1.5
_SHARE = 0.72  # of the slot's width


class CountBar(msgspec.Struct, frozen=True):
    """x and width in percent, y and height in pixels; `count` is None if not counted yet."""

    x: float
    width: float
    y: float
    height: float
    count: int | None
    since: datetime
    until: datetime


def bars(
    counts: Sequence[int | None], since: datetime, step: timedelta, *, height: float = HEIGHT
) -> tuple[CountBar, ...]:
    """Draw a bar for every count; the highest fills the strip, unless it is very low."""
    if not counts:
        return ()
    slot = WHOLE / len(counts)
    unit = height / max(4, *(count or 0 for count in counts))
    found = []
    for number, count in enumerate(counts):
        x, begin = slot * (number + (1 - _SHARE) / 2), since + number * step
        tall = round(max(_MIN_HEIGHT, count * unit), 1) if count else _EMPTY
        tall = height if count is None else tall
        width = percent(slot * _SHARE)
        found.append(CountBar(percent(x), width, height - tall, tall, count, begin, begin + step))
    return tuple(found)


WIDTH, DAYS_HEIGHT = 76.0, 18.0
DAYS_FLOOR = 17.0
_DAYS_SHARE = 0.7  # of a day's place that its bar fills
_FULL = 2.0  # times the allowed share: a bar of that fills the height
_LEAST = 2.0  # height of a bar that is not empty
_NO_DAY = 1.0


class DayBars(msgspec.Struct, frozen=True):
    """SVG paths: days without loss, within the objective, beyond it, and without data."""

    zero: str
    some: str
    hot: str
    blind: str


def day_bars(shares: Sequence[float | None], allowed: float) -> DayBars:
    """Draw lost shares, oldest day first; None is a day without data."""
    paths: dict[str, list[str]] = {"zero": [], "some": [], "hot": [], "blind": []}
    step = WIDTH / max(1, len(shares))
    for place, share in enumerate(shares):
        x = place * step
        if share is None:
            paths["blind"].append(_bar(x, DAYS_HEIGHT - 2, step))
        elif share <= 0:
            paths["zero"].append(_bar(x, _NO_DAY, step * _DAYS_SHARE))
        else:
            filled = min(1.0, share / (_FULL * allowed)) if allowed > 0 else 1.0
            height = max(_LEAST, filled * (DAYS_HEIGHT - 2))
            paths["hot" if share > allowed else "some"].append(_bar(x, height, step * _DAYS_SHARE))
    return DayBars(**{name: "".join(bars) for name, bars in paths.items()})


def _bar(x: float, height: float, width: float) -> str:
    return f"M{x:.1f} {DAYS_FLOOR:g}v-{round(height, 1):g}h{width:.1f}v{round(height, 1):g}z"


SPARK_HEIGHT = 18
STEP, BAR = 3.2, 2.2
SPARK_FLOOR = 17
HOT = 3  # changes in one hour that are worth a look
FULL = 5  # changes in one hour that fill the height


class Sparkline(msgspec.Struct, frozen=True):
    """SVG paths of the bars: hours without changes, with some, with many, and not watched."""

    zero: str
    some: str
    hot: str
    blind: str
    total: int
    unwatched: int  # hours that nobody watched and that have no change


def sparkline(numbers: Sequence[int], unwatched: Sequence[str] = ()) -> Sparkline:
    """Draw numbers, oldest hour first; `unwatched` as of `unwatched_hours`."""
    paths: dict[str, list[str]] = {"zero": [], "some": [], "hot": [], "blind": []}
    for place, number in enumerate(numbers):
        x = place * STEP
        if number:
            height = (SPARK_HEIGHT - 2) * min(number, FULL) / FULL
            paths["hot" if number >= HOT else "some"].append(_spark(x, height))
        elif unwatched and unwatched[place] == UNWATCHED:
            paths["blind"].append(_spark(x, SPARK_HEIGHT - 2, STEP))
        else:
            paths["zero"].append(_spark(x, 1))
    drawn = {name: "".join(bars) for name, bars in paths.items()}
    return Sparkline(**drawn, total=sum(numbers), unwatched=len(paths["blind"]))


@cache  # of few places and heights
def _spark(x: float, height: float, width: float = BAR) -> str:
    return f"M{x:.1f} {SPARK_FLOOR}v-{round(height, 1):g}h{width}v{round(height, 1):g}z"
