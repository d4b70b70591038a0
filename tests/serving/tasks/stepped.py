"""`manage.py` on a machine whose wall clock a test sets: it begins AHEAD, and each SIGUSR1 adds the
next of STEPS, which are seconds."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from pathlib import Path

from dashboard import clock
from leases.domain.steady_clock import SteadyClock

_steps = [int(step) for step in os.environ.get("STEPS", "").split(",") if step]
_ahead = int(os.environ.get("AHEAD", "0")) * 1_000_000_000


def _step(*_: object) -> None:
    global _ahead
    _ahead += _steps.pop(0) * 1_000_000_000


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _step)
    clock.use(SteadyClock(wall=lambda: time.time_ns() + _ahead, passed=clock.passed))
    root = Path(__file__).resolve().parents[3]
    sys.argv[0] = str(root / "manage.py")
    sys.path.insert(0, str(root))
    runpy.run_path(sys.argv[0], run_name="__main__")
