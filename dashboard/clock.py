"""The clock of the process: pages, deadlines and retention all use it.

Do not compare `datetime.now` or `timezone.now` with a moment that the process keeps: the wall clock
may have jumped in between. `dashboard.serving.tasks.clock_watch` looks for jumps.
"""

import time
from datetime import datetime

from leases.domain.steady_clock import SteadyClock


def passed() -> int:
    """Monotonic nanoseconds; where the system can count it, sleep of the machine is included."""
    return time.clock_gettime_ns(_BOOT) if _BOOT is not None else time.monotonic_ns()


_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_clock = SteadyClock(wall=time.time_ns, passed=passed)


def process_clock() -> SteadyClock:
    """The clock itself, for the task that watches it."""
    return _clock


def use(clock: SteadyClock) -> SteadyClock:
    """Use this clock from now on. Returns the previous one."""
    global _clock
    before, _clock = _clock, clock
    return before


def now() -> datetime:
    return _clock.now()
