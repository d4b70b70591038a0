"""Group commit: one transaction makes several writes durable.

A transaction costs about as much as ten rows. A single writer is served at once. With several, a
transaction waits for as many writes as the last one had, up to GATHER seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from leases.apiserver.failing import Failed
from leases.apiserver.storage.journal import Journal, JournalRow
from leases.apiserver.storage.records import Event, Version
from leases.wire.status import ApiError

# Seconds that a transaction waits for more writes at most.
GATHER = 0.005

Key = tuple[str, str, str]  # resource, namespace, name
# Gets the stored version or the error, on the event loop.
Done = Callable[[Version | None, ApiError | None], None]


class Write(msgspec.Struct, frozen=True):
    """A change on its way to disk, and the callback for its result."""

    key: Key
    event: Event
    done: Done

    @property
    def row(self) -> JournalRow:
        version = self.event.current
        return JournalRow(*self.key, self.event.revision, None if version is None else version.body)


# Gets the writes in their order and the error that kept them from disk, on the event loop.
Settle = Callable[[list[Write], Exception | None], None]


class Commits:
    """Hands batches to the journal, one at a time."""

    def __init__(self, journal: Journal, settle: Settle, failed: Failed) -> None:
        self._journal = journal
        self._settle = settle
        self._failed = failed
        self._gathered: list[Write] = []
        self._due: asyncio.Handle | None = None
        self._committing = False
        self._expected = 1

    def add(self, write: Write) -> None:
        self._gathered.append(write)
        if not self._committing:
            self._schedule()

    def _schedule(self) -> None:
        if len(self._gathered) >= self._expected > 1:
            self._submit()
        elif self._due is None:
            loop = asyncio.get_running_loop()
            if self._expected > 1:
                self._due = loop.call_later(GATHER, self._submit)
            else:
                self._due = loop.call_soon(self._submit)

    def _submit(self) -> None:
        loop = asyncio.get_running_loop()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        batch, self._gathered = self._gathered, []
        self._committing = True

        def done(error: Exception | None) -> None:
            loop.call_soon_threadsafe(self._committed, batch, error)

        try:
            self._journal.submit([write.row for write in batch], done)
        except Exception as error:
            self._failed("commit", error)
            self._committed(batch, error)

    def _committed(self, batch: list[Write], error: Exception | None) -> None:
        # The writes of this batch and those since: that many clients write at a time.
        self._expected = len(batch) + len(self._gathered)
        self._committing = False
        if self._gathered:
            self._schedule()
        try:
            self._settle(batch, error)
        except Exception as failure:
            self._failed("commit", failure)

    def flush(self) -> None:
        """Commit the gathered writes without waiting for more."""
        if self._gathered:
            self._submit()
