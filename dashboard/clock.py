"""What time it is for this process: the one clock that pages, deadlines and retention go by.

Do not ask `datetime.now` or `timezone.now` for anything that is compared with a moment that the
process keeps: the wall clock may jump between the two. `dashboard.serving.tasks.clock_watch`
looks for jumps.
"""

from __future__ import annotations

import time
from datetime import datetime

from leases.domain.clock import SteadyClock


def passed() -> int:
    """Nanoseconds that only go on, also while the machine sleeps where the system counts that."""
    return time.clock_gettime_ns(_BOOT) if _BOOT is not None else time.monotonic_ns()


_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_clock = SteadyClock(wall=time.time_ns, passed=passed)


def process_clock() -> SteadyClock:
    """The clock of the process, for who looks after it."""
    return _clock


def use(clock: SteadyClock) -> SteadyClock:
    """Let the process go by this clock from now on; the one before."""
    global _clock
    before, _clock = _clock, clock
    return before


def now() -> datetime:
    return _clock.now()
