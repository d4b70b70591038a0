"""A bar chart of the last 24 hours. Widths are percent, heights are pixels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

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
        changes = f"{self.number:,} change{'' if self.number == 1 else 's'}"
        return ", ".join(filter(None, (self.hour, changes if self.known else "", self.blind)))


class HoursChart(msgspec.Struct, frozen=True):
    """`finding` is the chart in words."""

    bars: tuple[HourBar, ...]
    grid: tuple[tuple[float, str], ...]  # y and number of each line
    fog: tuple[tuple[float, float], ...]  # x and width of the unwatched times
    finding: str


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
                hour=f"{hour:%H}:00",
                number=number,
                label=f"{hour:%H}:00" if marked and far else "",
                middle=round(hit + step / 2, 2),
                blind=words[place],
                highest=bool(number) and number == most and number not in numbers[place + 1 :],
            )
        )
    fog = tuple(_fog(span, first, step) for span in blind)
    return HoursChart(tuple(bars), _grid(most), fog, _finding(bars, what))


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
