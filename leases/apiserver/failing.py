"""A failure that nobody expected: whoever runs the server is told, and the server goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

logger = logging.getLogger(__name__)

# Told the name of the part that failed, and why. Called on the event loop.
Failed = Callable[[str, Exception], None]


class Keep(Protocol):
    """Runs a task, and again when it dies, until `may_end` says that its end is in order."""

    def __call__(
        self, task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
    ) -> asyncio.Task[None]: ...


def log_failure(part: str, error: Exception) -> None:
    """For a server that nobody supervises."""
    logger.error("The part %s of the Lease API failed on an unexpected error", part, exc_info=error)


def run_once(
    task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
) -> asyncio.Task[None]:
    """For a server that nobody supervises: its end is seen by who awaits the task."""
    del may_end

    async def run() -> None:
        await work()

    return asyncio.create_task(run(), name=task)
