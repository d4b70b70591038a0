"""The learned interval between a Lease's renewals: the median of the last few.

A median forgets a missed renewal and the pair of renewals 10 ms apart that opens a client-go term,
and still follows a holder that was configured anew within three renewals. The same window serves
the clock skew.
"""

from __future__ import annotations

WINDOW = 5  # numbers kept per Lease: outlives two odd ones, costs 200 bytes


def with_sample(window: tuple[float, ...], sample: float) -> tuple[float, ...]:
    """The window with one more number, without the oldest when it is full."""
    return (*window[-WINDOW + 1 :], sample)


def median(window: tuple[float, ...]) -> float | None:
    """The middle number (the upper of two); None of none."""
    return sorted(window)[len(window) // 2] if window else None
