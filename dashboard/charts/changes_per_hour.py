"""A day as 24 upright bars over their hours. Widths are percent, heights are pixels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

TOP, FLOOR = 16.0, 112.0
LEFT = 5.0  # percent, for the numbers of the axis
LABELLED = 6  # hours between two labels below


class HourBar(msgspec.Struct, frozen=True):
    """One hour. `hit` is the whole height that shows its title."""

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


class Grid(msgspec.Struct, frozen=True):
    """A line of the grid and its number."""

    y: float
    number: str


class HoursChart(msgspec.Struct, frozen=True):
    """`finding` says in words what the picture shows."""

    bars: tuple[HourBar, ...]
    grid: tuple[Grid, ...]
    finding: str


def hours_chart(numbers: Sequence[int], now: datetime, *, what: str) -> HoursChart:
    """The oldest hour first; `what` names what was counted."""
    step = (100 - LEFT) / len(numbers)
    first = now.astimezone(UTC).replace(minute=0) - timedelta(hours=len(numbers) - 1)
    most = max(numbers)
    bars = []
    for place, number in enumerate(numbers):
        hour = first + timedelta(hours=place)
        height = round((FLOOR - TOP) * number / most, 1) if number else 1.0
        hit = LEFT + place * step
        marked = hour.hour % LABELLED == 0 or place == len(numbers) - 1
        far = place < len(numbers) - 4 or place == len(numbers) - 1  # no label beside the last
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
                highest=bool(number) and number == most and number not in numbers[place + 1 :],
            )
        )
    return HoursChart(tuple(bars), _grid(most), _finding(bars, what))


def _grid(most: int) -> tuple[Grid, ...]:
    lines = [Grid(FLOOR, "0")]
    if most > 1:
        half = -(-most // 2)
        lines.append(Grid(round(FLOOR - (FLOOR - TOP) * half / most, 1), f"{half:,}"))
    if most:
        lines.append(Grid(TOP, f"{most:,}"))
    return tuple(lines)


def _finding(bars: Sequence[HourBar], what: str) -> str:
    total = sum(bar.number for bar in bars)
    said = f"{what} per hour over {len(bars)} h: {total:,} in total"
    highest = next((bar for bar in bars if bar.highest), None)
    return f"{said}, highest {highest.number:,} at {highest.hour}" if highest else said
