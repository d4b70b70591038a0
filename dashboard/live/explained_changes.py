"""Give the changes that pages show the cause that became known after they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from leases.domain.cause.incident import Cause, Incident
from leases.domain.changes.change import Change
from leases.domain.changes.change_identity import identity
from leases.domain.lease import ObjectName

KEPT = 1000  # changes
Recent = deque[tuple[int, Change]]  # changes with their number in the feed, oldest first


class ExplainableChanges:
    """The newest changes of a cluster, also those that no frame brought."""

    def __init__(self) -> None:
        self._kept: dict[tuple[ObjectName, str], Change] = {}  # oldest first

    def add(self, changes: Sequence[Change]) -> None:
        """Take these changes, oldest first."""
        for change in changes[-KEPT:]:
            self._kept[_member(change)] = change
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]

    def explain(self, incidents: Iterable[Incident], recent: Recent) -> list[Change]:
        """Write cause and incident into the changes, also into `recent`.

        Returns those that they differ for, oldest first.
        """
        found: dict[tuple[ObjectName, str], Change] = {}
        for incident in incidents:
            for one in incident.members:
                change = self._kept.get((one.lease, one.identity))
                if change is None:
                    continue
                known = msgspec.structs.replace(change, cause=incident.cause, incident=incident.id)
                given_up = incident.settled and incident.cause is Cause.UNKNOWN
                if known != change or given_up:  # then nobody looks for the cause any more
                    self._kept[one.lease, one.identity] = found[one.lease, one.identity] = known
        for place, (seq, change) in enumerate(recent if found else ()):
            recent[place] = (seq, found.get(_member(change), change))
        return sorted(found.values(), key=lambda change: change.at)

    def with_cause(self, change: Change) -> Change:
        """The change of history with the cause that is known here. For any thread."""
        known = self._kept.get(_member(change))
        if known is None or known.incident is None:
            return change
        return msgspec.structs.replace(change, cause=known.cause, incident=known.incident)


def _member(change: Change) -> tuple[ObjectName, str]:
    """What an incident calls a change."""
    return ObjectName(change.namespace, change.name), identity(change)
