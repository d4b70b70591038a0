"""The watch of one cluster, with events and clock moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from leases.domain.watched_times import ConnectionState
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import Applied, Connected, Listed, ReflectorEvent
from tests.support.values.leases import NOON, after, lease


class Watched:
    """A tracker whose clock is moved by hand, and all its updates."""

    def __init__(self) -> None:
        self.now = NOON
        self.updates: list[Update] = []
        self.store = Store("c")
        self.tracker = Tracker(self.store, [self.updates.append], lambda: self.now)

    def at(self, seconds: float, *events: ReflectorEvent) -> None:
        """Let the clock come so far, with every deadline in between, then these events."""
        until = after(seconds)
        while self.now < until:
            self.now = min(self._next(), until)
            self.tracker.tick()
        for event in events:
            self.tracker.handle(event)

    def renew(self, seconds: float, version: int, **given: Any) -> None:
        self.at(seconds, Applied(lease(renewed=seconds, version=version, **given)))

    def live(self, *leases: Any) -> None:
        self.at(0, Listed(leases, "1"), Connected())

    def _next(self) -> datetime:
        step = self.now + timedelta(seconds=0.5)
        deadline = self.store.next_deadline()
        return step if deadline is None or deadline <= self.now else min(step, deadline)

    @property
    def changes(self) -> list[str]:
        return [change.change.value for update in self.updates for change in update.changes]

    @property
    def states(self) -> list[ConnectionState]:
        return [update.connection.state for update in self.updates if update.connection]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    yield watched
    watched.tracker.stop()
