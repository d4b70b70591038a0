"""The learned interval between a Lease's renewals: the median of the last few.

A median ignores a missed renewal and the two renewals 10 ms apart at the start of a client-go term,
and follows a new configuration within three renewals. The clock skew is learned the same way.
Samples are packed into bytes to save memory: each Lease has two such windows.
"""

from __future__ import annotations

from struct import Struct

WINDOW = 5  # samples kept per Lease: enough to ignore two odd ones
_pack = Struct("d").pack
_ROOM = WINDOW * Struct("d").size

EMPTY = b""


def with_sample(window: bytes, sample: float) -> bytes:
    """Add a sample; drop the oldest if the window is full."""
    return (window + _pack(sample))[-_ROOM:]


def samples(window: bytes) -> list[float]:
    """Return the samples, oldest first."""
    return list(memoryview(window).cast("d"))


def median(window: bytes) -> float | None:
    """Return the median (the upper of two); None if there are no samples."""
    if not window:
        return None
    numbers: list[float] = sorted(memoryview(window).cast("d"))
    return numbers[len(numbers) // 2]
