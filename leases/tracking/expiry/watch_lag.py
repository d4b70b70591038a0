"""Measure how long renewals take from the writer to us."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from statistics import median

from leases.domain.lease import ObjectName
from leases.tracking.tracked_lease import Tracked

SAMPLE = 15  # the lag is the median of this many renewals


class Lags:
    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=SAMPLE)

    def note(
        self, keys: Sequence[ObjectName], get: Callable[[ObjectName], Tracked | None]
    ) -> float | None:
        """Add renewals, newest last. Returns the median in seconds; None before the first."""
        for key in keys[-SAMPLE:]:
            known = get(key)
            if known is not None and not known.estimated and known.renew_time:
                lag = known.observed_at - known.renew_time
                self._lags.append(lag.total_seconds())
        return max(0.0, median(self._lags)) if self._lags else None

    def forget(self) -> None:
        """Drop all samples: our clock was set."""
        self._lags.clear()
