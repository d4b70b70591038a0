"""What waits to be written of one cluster, and how much of it goes into one transaction.

A state is written with the last change that led to it: a state that is ahead of its changes would
make a restart skip them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from leases.domain.change import Change
from leases.domain.lease import ObjectName

CHANGES_PER_WRITE = 500  # few enough that neither the loop nor another writer waits long
STATES_PER_WRITE = 500


class Waiting:
    """Changes in their order, and the names of Leases whose state is to be remembered."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self._per_lease: dict[ObjectName, int] = {}  # changes that wait
        self._changed: dict[ObjectName, None] = {}

    def __len__(self) -> int:
        """Changes not yet taken."""
        return len(self._changes)

    def add(self, changes: Iterable[Change], changed: Iterable[ObjectName]) -> None:
        """Queue changes, and Leases that changed."""
        for change in changes:
            self._changes.append(change)
            key = ObjectName(change.namespace, change.name)
            self._per_lease[key] = self._per_lease.get(key, 0) + 1
        self._changed.update(dict.fromkeys(changed))

    def take(
        self, renewed: Iterable[ObjectName] = ()
    ) -> tuple[list[Change], list[ObjectName], bool]:
        """Changes and the Leases whose states go with them, or with the `renewed`; whether all that
        changed is taken."""
        changes = [
            self._changes.popleft() for _ in range(min(len(self._changes), CHANGES_PER_WRITE))
        ]
        states: dict[ObjectName, None] = {}
        for change in changes:
            key = ObjectName(change.namespace, change.name)
            left = self._per_lease.pop(key) - 1
            if left:
                self._per_lease[key] = left
            elif key in self._changed:
                states[key] = None
        for key in states:
            del self._changed[key]
        states |= self._some(self._changed, STATES_PER_WRITE)
        states.update((key, None) for key in renewed if key not in self._per_lease)
        return changes, list(states), not (self._changes or self._changed)

    def _some(self, names: dict[ObjectName, None], most: int) -> dict[ObjectName, None]:
        """The first names, without those of which changes still wait."""
        some = {key: None for key in islice(names, most) if key not in self._per_lease}
        for key in some:
            del names[key]
        return some
