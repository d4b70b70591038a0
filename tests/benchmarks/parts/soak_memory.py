"""The memory of replicas over time, each from one start to its end."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict

from tests.benchmarks.parts.figures import Usage
from tests.support.replicas import Replicas

EVERY = 10.0  # seconds between two samples
FEWEST = 30  # samples that a judgement needs
MAX_SLOPE = 0.1  # MiB a minute, from which on memory is not flat

Samples = list[tuple[float, float]]  # seconds and MiB


class Memory:
    """Samples by replica and process, judged from `warm` seconds after a start on."""

    def __init__(self, warm: float) -> None:
        self._warm = warm
        self._samples: dict[tuple[str, int], Samples] = defaultdict(list)

    async def sample(self, replicas: Replicas) -> None:
        """Sample both until cancelled."""
        while True:
            for name in ("one", "other"):
                process = getattr(replicas, name).process
                try:
                    used = Usage(process.pid).memory()
                except (OSError, AssertionError):  # it has ended
                    continue
                self._samples[name, process.pid].append((time.monotonic(), used))
            await asyncio.sleep(EVERY)

    def grew(self) -> bool:
        """Print each life; whether a long one was not flat, or none was long enough to tell."""
        slopes = [slope(name, found, self._warm) for (name, _), found in self._samples.items()]
        judged = [one for one in slopes if one is not None]
        if not judged:
            print(f"memory: no replica lived for {self._warm + EVERY * FEWEST:.0f} s, which a "
                  "judgement takes: give more --minutes")  # fmt: skip
        return not judged or max(judged) >= MAX_SLOPE


def slope(name: str, samples: Samples, warm: float) -> float | None:
    """Print one life. Returns the MiB a minute by which it grew once warm, by least squares; None
    of a short one.
    """
    began = samples[0][0]
    judged = [(at, used) for at, used in samples if at >= began + warm]
    print(f"{name}: RSS {samples[0][1]:.0f} to {samples[-1][1]:.0f} MiB "
          f"in {samples[-1][0] - began:.0f} s", end="")  # fmt: skip
    if len(judged) < FEWEST:
        print(", too short to judge")
        return None
    found = statistics.linear_regression(*zip(*judged, strict=True)).slope * 60
    flat = f"flat is less than {MAX_SLOPE}"
    print(f"; {found:+.3f} MiB/min from {warm:.0f} s on, {judged[0][1]:.1f} to "
          f"{judged[-1][1]:.1f} MiB ({flat})")  # fmt: skip
    return found
