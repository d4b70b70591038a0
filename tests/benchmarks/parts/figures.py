"""What a process uses, and how measured values are printed."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

MIB = 1024 * 1024
TICKS = os.sysconf("SC_CLK_TCK")


class Usage:
    """What a process uses from now on."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.began, self.cpu = time.monotonic(), self._cpu()

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def seconds(self) -> float:
        return self._cpu() - self.cpu

    @property
    def share(self) -> float:
        """Percent of one core."""
        return 100 * (self._cpu() - self.cpu) / (time.monotonic() - self.began)

    def memory(self, what: str = "VmRSS") -> float:
        """VmRSS or VmHWM in MiB."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{what}:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) / 1024


def resident_bytes() -> int:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def spread(milliseconds: Sequence[float], digits: int = 0) -> str:
    """`median 12 ms, p95 30 ms, worst 41 ms`; p95 of 20 values and more."""
    if not milliseconds:
        return "nothing measured"
    named = {"median": statistics.median(milliseconds), "worst": max(milliseconds)}
    if len(milliseconds) >= 20:
        p95 = statistics.quantiles(milliseconds, n=20)[18]
        named = {"median": named["median"], "p95": p95, "worst": named["worst"]}
    return ", ".join(f"{name} {value:.{digits}f} ms" for name, value in named.items())


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share (0 to 1) of them does not exceed; NaN of none."""
    ordered = sorted(values) or [float("nan")]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
