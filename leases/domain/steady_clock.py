"""One clock for the process: it goes on evenly, and follows the wall clock when that is set.

The wall clock of a machine can jump: somebody sets it, NTP corrects it, a paused machine goes on.
A deadline that is judged by it would then be wrong by the jump. So time is what the wall clock said
once, plus what the monotonic clock says has passed since. Who looks often enough learns of a jump
at once and can move every moment that it keeps by the same amount.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from leases.domain.bounded_time import plus

TOLERANCE = 100_000_000  # ns between the two clocks; more is a jump
TORN = 10_000_000  # ns; the two clocks were not read at one instant, so they tell nothing
SLEW = 0.005  # of the time that passed; NTP slews ten times slower
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) * 10**9

M = TypeVar("M", datetime, datetime | None)
Nanoseconds = Callable[[], int]


class Jump(msgspec.Struct, frozen=True):
    """The wall clock was set at one instant, `before` by the old reckoning, `after` by the new."""

    before: datetime
    after: datetime

    @property
    def by(self) -> timedelta:
        return self.after - self.before


class SteadyClock:
    """Any thread may ask for `now`; one thread may `look`."""

    def __init__(self, *, wall: Nanoseconds, passed: Nanoseconds) -> None:
        """`wall` counts since 1970 and may jump; `passed` only goes on, from anywhere."""
        self._wall = wall
        self._passed = passed
        self._looked_at = passed()
        self._ahead = _possible(wall()) - self._looked_at  # of `passed`: one int, replaced at once

    def now(self) -> datetime:
        return _moment(self._passed() + self._ahead)

    def look(self) -> Jump | None:
        """Compare the two clocks: follow a slow drift, and tell a jump.

        After a jump `now` is by the new reckoning.
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
    """A moment that we keep, by the reckoning after a jump, as far as a calendar reaches."""
    return moment if moment is None else plus(moment, by)


def _possible(wall: int) -> int:
    """A clock may be set to any time; moments must leave room for what is added to them."""
    return min(max(wall, 0), _LATEST)


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
