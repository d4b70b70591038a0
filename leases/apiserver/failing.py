"""Report unexpected failures to the process that runs the server, and keep serving."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

logger = logging.getLogger(__name__)

# Gets the name of the failed part and the error, on the event loop.
Failed = Callable[[str, Exception], None]


class Keep(Protocol):
    """Runs a task and restarts it when it dies, until `may_end` returns True."""

    def __call__(
        self, task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
    ) -> asyncio.Task[None]: ...


def log_failure(part: str, error: Exception) -> None:
    """The default of a server without a supervisor."""
    logger.error("The part %s of the Lease API failed on an unexpected error", part, exc_info=error)


def run_once(
    task: str, work: Callable[[], Awaitable[None]], *, may_end: Callable[[], bool]
) -> asyncio.Task[None]:
    """The default of a server without a supervisor: await the task to see how it ended."""
    del may_end

    async def run() -> None:
        await work()

    return asyncio.create_task(run(), name=task)
