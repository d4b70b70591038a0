"""The days, ISO weeks and calendar quarters in which reliability is counted. All are in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

QUARTER_MONTHS = 3
DAY = timedelta(days=1)


class Period(StrEnum):
    DAY = "day"
    WEEK = "week"
    QUARTER = "quarter"


def first_day(period: Period, day: date) -> date:
    """Return the first day of the period that contains this day."""
    if period is Period.WEEK:
        return day - timedelta(days=day.weekday())
    if period is Period.QUARTER:
        return day.replace(month=(day.month - 1) // QUARTER_MONTHS * QUARTER_MONTHS + 1, day=1)
    return day


def next_first_day(period: Period, first: date) -> date:
    """Return the first day of the following period."""
    if period is Period.QUARTER:
        return first_day(period, first + timedelta(days=QUARTER_MONTHS * 31))
    return first + timedelta(days=7 if period is Period.WEEK else 1)


def days_of(period: Period, first: date) -> list[date]:
    number = (next_first_day(period, first) - first).days
    return [first + timedelta(days=day) for day in range(number)]


def start_of(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
