"""Log the writes that could not be followed."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from leases.tracking.tracked_lease import Update

logger = logging.getLogger(__name__)

MAX_LOGGED = 20  # per minute; the rest are counted
MINUTE = timedelta(minutes=1)


class SkippedLog:
    """Logs each write that could not be followed, at most MAX_LOGGED a minute."""

    def __init__(self) -> None:
        self._minute: datetime | None = None
        self._logged = self._left_out = 0

    def note(self, update: Update) -> None:
        """Log what is new in this update."""
        if self._minute is None or not self._minute <= update.now < self._minute + MINUTE:
            if self._left_out:
                logger.error(
                    "%s: %d more Leases were not understood", update.cluster, self._left_out
                )
            self._minute, self._logged, self._left_out = update.now, 0, 0
        for one in update.skipped:
            if one.again:
                continue
            if self._logged >= MAX_LOGGED:
                self._left_out += 1
                continue
            self._logged += 1
            logger.error(
                "%s: the Lease %s is not understood; the watch goes on. %s",
                update.cluster,
                one.key or "without a readable name",
                one.reason,
                exc_info=one.error,
            )
