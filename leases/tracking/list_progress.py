"""The progress of a large list, in words for the page and the log."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from leases.domain.steady_clock import Jump, moved
from leases.wire.watch_events import Listed, ListPage

logger = logging.getLogger(__name__)

REPORT_EVERY = timedelta(seconds=0.5)
LOG_EVERY = timedelta(seconds=2)


class Progress:
    def __init__(self, cluster: str, resource_version: str, began: datetime) -> None:
        self.resource_version = resource_version
        self._cluster = cluster
        self._read = 0
        self._began = began
        self._logged_at: datetime | None = None
        self._reported_at: datetime | None = None

    def clock_jumped(self, jump: Jump) -> None:
        self._began = moved(self._began, jump.by)
        self._logged_at = self._reported_at = None

    def step(self, page: ListPage | Listed, now: datetime) -> str | None:
        """Count a page. Returns a sentence, at most one every REPORT_EVERY."""
        self._read += len(page.leases)
        if isinstance(page, Listed):
            seconds = (now - self._began).total_seconds()
            logger.info("%s: listed %d Leases in %.1f s", self._cluster, self._read, seconds)
            return None
        # Not every API sends its estimate of the rest.
        of = "" if page.remaining is None else f" of about {self._read + page.remaining:,}"
        sentence = f"Listed {self._read:,}{of} Leases."
        if self._logged_at is None or now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            logger.info("%s: %s", self._cluster, sentence)
        if self._reported_at is None or now - self._reported_at >= REPORT_EVERY:
            self._reported_at = now
            return sentence
        return None
