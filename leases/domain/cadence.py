"""The learned interval between a Lease's renewals: the median of the last few.

A median forgets a missed renewal and the pair of renewals 10 ms apart that opens a client-go term,
and still follows a holder that was configured anew within three renewals. The same window serves
the clock skew. A window is kept as packed numbers: there is one pair for each of many Leases.
"""

from __future__ import annotations

from struct import Struct

WINDOW = 5  # numbers kept per Lease: outlives two odd ones
_pack = Struct("d").pack
_ROOM = WINDOW * Struct("d").size

EMPTY = b""


def with_sample(window: bytes, sample: float) -> bytes:
    """The window with one more number, without the oldest when it is full."""
    return (window + _pack(sample))[-_ROOM:]


def samples(window: bytes) -> list[float]:
    """The numbers of a window, oldest first."""
    return list(memoryview(window).cast("d"))


def median(window: bytes) -> float | None:
    """The middle number (the upper of two); None of none."""
    if not window:
        return None
    numbers: list[float] = sorted(memoryview(window).cast("d"))
    return numbers[len(numbers) // 2]
