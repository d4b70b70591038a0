"""The memory of replicas over time, each from one start to its end."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from itertools import pairwise

from tests.benchmarks.parts.figures import Usage
from tests.support.replicas import Replicas

EVERY = 10.0  # seconds between two samples
WARM = 90.0  # seconds after a start in which memory grows
FEWEST = 30  # samples that a judgement needs
MAX_GROWTH = 0.05  # of the last third over the middle one


class Memory:
    """Samples in MiB by replica and process."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)

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
        """Print the thirds of each life; whether a long one was not flat."""
        verdicts = [grew(name, found) for (name, _), found in self._samples.items()]
        return any(verdicts)


def grew(name: str, samples: list[tuple[float, float]]) -> bool:
    """Print the thirds of one life, of samples in seconds and MiB; whether a long one grew."""
    began = samples[0][0]
    warm = [(at, used) for at, used in samples if at >= began + WARM]
    if len(warm) < 6:
        print(f"{name}: RSS {samples[0][1]:.0f} to {samples[-1][1]:.0f} MiB "
              f"in {samples[-1][0] - began:.0f} s, too short to judge")  # fmt: skip
        return False
    cuts = [0, len(warm) // 3, 2 * len(warm) // 3, len(warm)]
    first, middle, last = (
        statistics.mean(used for _, used in warm[since:until]) for since, until in pairwise(cuts)
    )
    slope = statistics.linear_regression(*zip(*warm, strict=True)).slope * 3600
    long = len(warm) >= FEWEST
    print(f"{name}: RSS in thirds {first:.1f}, {middle:.1f}, {last:.1f} MiB over "
          f"{warm[-1][0] - warm[0][0]:.0f} s, {slope:+.1f} MiB/h"
          f"{'' if long else ', too short to judge'}")  # fmt: skip
    return long and last > middle * (1 + MAX_GROWTH)
