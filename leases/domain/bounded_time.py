"""Sums of moments and spans that never leave the calendar.

A Lease may carry any time of the years 1 to 9999 and any int32 of seconds, so that a sum of the two
may lie beyond what datetime can hold. Such a sum is the first or the last moment there is: for a
deadline that means long past, or never. Whatever adds a span to a moment that came from a Lease, or
a span that came from a Lease to any moment, does it here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)
_NOTHING = timedelta(0)


def span(seconds: float) -> timedelta:
    """So many seconds; of more than a timedelta can hold, the most that it can."""
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max if seconds > 0 else timedelta.min


def plus(moment: datetime, length: timedelta) -> datetime:
    """The moment so much later, or earlier if `length` is negative; at most an end of the
    calendar.
    """
    try:
        return moment + length
    except OverflowError:
        return LATEST if length > _NOTHING else EARLIEST


def after(moment: datetime, seconds: float, *, microseconds: int = 0) -> datetime:
    """The moment so many seconds later, or earlier if they are negative."""
    try:
        return moment + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError:
        return LATEST if seconds >= 0 else EARLIEST


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC. RFC 3339 allows offsets that lead out of the calendar."""
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return EARLIEST if moment.year == EARLIEST.year else LATEST
