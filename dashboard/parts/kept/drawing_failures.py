"""A failure that nobody expected in what open pages are sent."""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

# Told the name of the part that failed, and why; the part is tried again.
Failed = Callable[[str, Exception], None]


def log_failure(part: str, error: Exception) -> None:
    """For a channel that nobody supervises."""
    logger.error("The part %s of open pages failed on an unexpected error", part, exc_info=error)
