"""The queue of one cluster, and how much of it goes into one transaction.

A state is written with the last change that led to it: a state ahead of its changes would make a
restart skip them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from leases.domain.changes.change import Change
from leases.domain.lease import ObjectName
from leases.domain.split_dict import SplitDict
from leases.history.write.backlog import MAX_WAITING

CHANGES_PER_WRITE = 500  # few enough that neither the event loop nor another writer waits long
STATES_PER_WRITE = 500


class Waiting:
    """Changes in order, and the names of Leases whose state to store.

    There are at most `most_names` names, or twice as many as the cluster has Leases; beyond that,
    names of deleted Leases are dropped.
    """

    def __init__(self, most_names: int = MAX_WAITING) -> None:
        self._changes: deque[Change] = deque()
        # Twice the waiting changes, plus one if a state goes with the last of them.
        self._per_lease: SplitDict[int] = SplitDict()
        self._changed: dict[ObjectName, None] = {}  # without a waiting change
        self._most_names = self._limit = most_names
        self.let_names_go = False  # the names of deleted Leases were dropped

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, changes: Iterable[Change], changed: Iterable[ObjectName]) -> None:
        for change in changes:
            self._changes.append(change)
            key = ObjectName(change.namespace, change.name)
            self._per_lease[key] = (self._per_lease.get(key) or key in self._changed) + 2
            self._changed.pop(key, None)
        self._add_names(changed)

    def _add_names(self, names: Iterable[ObjectName]) -> None:
        for key in names:
            waits = self._per_lease.get(key)
            if waits is None:
                self._changed[key] = None
            else:
                self._per_lease[key] = waits | 1

    @property
    def has_too_many_names(self) -> bool:
        return len(self._changed) > self._limit

    def let_go(self, exists: Callable[[ObjectName], bool]) -> None:
        """Keep only names of existing Leases: while the database is down, names may churn."""
        self._changed = {key: None for key in self._changed if exists(key)}
        self._limit = max(self._most_names, 2 * len(self._changed))
        self.let_names_go = True

    def take(
        self, renewed: Iterable[ObjectName] = ()
    ) -> tuple[list[Change], list[ObjectName], bool]:
        """Take changes and the Leases whose states go with them. Returns whether that is all."""
        changes = [
            self._changes.popleft() for _ in range(min(len(self._changes), CHANGES_PER_WRITE))
        ]
        states: dict[ObjectName, None] = {}
        for change in changes:
            key = ObjectName(change.namespace, change.name)
            left = self._per_lease.pop(key) - 2
            if left > 1:
                self._per_lease[key] = left
            elif left:
                states[key] = None
        for key in list(islice(self._changed, STATES_PER_WRITE)):
            states[key] = self._changed.pop(key)
        states.update((key, None) for key in renewed if self._per_lease.get(key) is None)
        return changes, list(states), not (self._changes or self._changed)

    def put_back(self, changes: list[Change], states: list[ObjectName]) -> None:
        """Undo a `take`, if nothing was added since."""
        self._changes.extendleft(reversed(changes))
        for change in changes:
            key = ObjectName(change.namespace, change.name)
            self._per_lease[key] = (self._per_lease.get(key) or 0) + 2
        self._add_names(states)
