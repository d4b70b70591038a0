"""How far behind a cluster's renewals we are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from statistics import median

from leases.domain.lease import ObjectName
from leases.tracking.tracked_lease import Tracked

SAMPLE = 15  # renewals whose median tells how far we are behind


class Lags:
    """The times from a renewal, by its writer's clock, to our seeing it: of the newest few."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=SAMPLE)

    def note(
        self, keys: Sequence[ObjectName], get: Callable[[ObjectName], Tracked | None]
    ) -> float | None:
        """Take in renewals, the newest last; the median in seconds, None before there was one."""
        for key in keys[-SAMPLE:]:
            known = get(key)
            if known is not None and not known.estimated and known.renew_time:
                lag = known.observed_at - known.renew_time
                self._lags.append(lag.total_seconds())
        return max(0.0, median(self._lags)) if self._lags else None

    def forget(self) -> None:
        """Our clock was set: what was measured before tells nothing."""
        self._lags.clear()
