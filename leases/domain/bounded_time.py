"""Add times and durations without leaving the range of datetime.

A Lease may carry any time of the years 1 to 9999 and any int32 of seconds, so a sum may overflow
datetime. Such a sum becomes the first or last possible time: for a deadline, long past or never.
Use these functions for every sum with a time or a duration from a Lease.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)
_NOTHING = timedelta(0)


def span(seconds: float) -> timedelta:
    """Return a duration, cut to what a timedelta can hold."""
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max if seconds > 0 else timedelta.min


def plus(moment: datetime, length: timedelta) -> datetime:
    """Return the sum, cut to the range of datetime."""
    try:
        return moment + length
    except OverflowError:
        return LATEST if length > _NOTHING else EARLIEST


def after(moment: datetime, seconds: float, *, microseconds: int = 0) -> datetime:
    """Return the time `seconds` later, cut to the range of datetime."""
    try:
        return moment + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError:
        return LATEST if seconds >= 0 else EARLIEST


def in_utc(moment: datetime) -> datetime:
    """Convert to UTC. RFC 3339 allows offsets that overflow datetime."""
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return EARLIEST if moment.year == EARLIEST.year else LATEST
