"""What one step of the store has changed so far."""

from __future__ import annotations

from datetime import datetime

from leases.domain.changes.change import Change
from leases.domain.lease import ObjectName
from leases.tracking.tracked_lease import Skipped, Update


class Step:
    """Collects what becomes one Update. Keys keep the order in which they came."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.redraw: dict[ObjectName, None] = {}
        self.renewed: list[ObjectName] = []
        self.removed: dict[ObjectName, None] = {}
        self.skipped: list[Skipped] = []

    @property
    def is_news(self) -> bool:
        """Whether more than freshness changed."""
        return bool(self.changes or self.redraw or self.removed or self.skipped)

    def update(
        self, cluster: str, seq: int, now: datetime, *, listed: bool = False, partial: bool = False
    ) -> Update:
        return Update(
            cluster=cluster,
            now=now,
            seq=seq,
            changes=tuple(self.changes),
            redraw=tuple(self.redraw),
            renewed=tuple(self.renewed),
            removed=tuple(self.removed),
            skipped=tuple(self.skipped),
            listed=listed,
            partial=partial,
        )
