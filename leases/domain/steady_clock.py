"""The clock of the process, and sums of times that stay in the range of datetime.

A Lease may carry any time of the years 1 to 9999 and any int32 of seconds, so a sum may overflow
datetime. Such a sum becomes the first or last possible time: for a deadline, long past or never.
Use these functions for every sum with a time or a duration from a Lease.

A wall clock can jump: somebody sets it, NTP corrects it, a paused machine resumes. A deadline
judged by it would be wrong by the jump. So the time is the wall clock at the start plus the
monotonic clock since. A regular check notices a jump, so that every stored time can be moved by it.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

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


TOLERANCE = 100_000_000  # ns; a larger difference of the two clocks is a jump
TORN = 10_000_000  # ns; a slower read of the two clocks proves nothing
SLEW = 0.005  # share of the time passed; NTP slews ten times slower
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) * 10**9

M = TypeVar("M", datetime, datetime | None)
Nanoseconds = Callable[[], int]


class Jump(msgspec.Struct, frozen=True):
    """The wall clock was set: `before` by the old clock, `after` by the new."""

    before: datetime
    after: datetime

    @property
    def by(self) -> timedelta:
        return self.after - self.before


class SteadyClock:
    """Any thread may call `now`; one thread may call `look`."""

    def __init__(self, *, wall: Nanoseconds, passed: Nanoseconds) -> None:
        """`wall` is in ns since 1970 and may jump; `passed` only grows, from any start."""
        self._wall = wall
        self._passed = passed
        self._looked_at = passed()
        # Added to `passed`: one int, replaced atomically.
        self._ahead = _possible(wall()) - self._looked_at

    def now(self) -> datetime:
        return _moment(self._passed() + self._ahead)

    def look(self) -> Jump | None:
        """Compare the two clocks: follow a slow drift, and report a jump.

        After a jump, `now` is by the new clock.
        """
        before = self._passed()
        wall = self._wall()
        if self._passed() - before > TORN:
            return None
        drift = _possible(wall) - before - self._ahead
        if abs(drift) > TOLERANCE:
            old = _moment(before + self._ahead)
            self._ahead += drift
            self._looked_at = before
            return Jump(old, _moment(before + self._ahead))
        most = int((before - self._looked_at) * SLEW)
        self._ahead += min(max(drift, -most), most)
        self._looked_at = before
        return None


def moved(moment: M, by: timedelta) -> M:
    """Return a stored time by the clock after a jump, cut to the range of datetime."""
    return moment if moment is None else plus(moment, by)


def _possible(wall: int) -> int:
    """Clamp a wall clock, so that later sums do not overflow."""
    return min(max(wall, 0), _LATEST)


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
