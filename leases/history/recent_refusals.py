"""Recent refusals of the database, kept in memory for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from leases.history.refused_rows import MAX_SHOWN, SHOWN_FOR, Refusal


class RecentRefusals:
    """Of all clusters. Only the event loop writes; any thread may read."""

    def __init__(self) -> None:
        self.total = 0  # since the start
        self._lately: dict[str, tuple[Refusal, ...]] = {}  # replaced as a whole; oldest first

    def fill(self, cluster: str, oldest_first: Iterable[Refusal]) -> None:
        """Load what earlier runs set aside."""
        self._lately[cluster] = tuple(oldest_first)

    def add(self, refused: Sequence[Refusal]) -> None:
        """Add new refusals."""
        self.total += len(refused)
        for one in refused:
            known = self._lately.get(one.cluster, ())
            brief = msgspec.structs.replace(one, content="")
            self._lately[one.cluster] = (*known, brief)[-MAX_SHOWN:]

    def lately(self, cluster: str, now: datetime) -> list[Refusal]:
        """Return the refusals that still need attention, oldest first."""
        return [one for one in self._lately.get(cluster, ()) if one.at > now - SHOWN_FOR]
