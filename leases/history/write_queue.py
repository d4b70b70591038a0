"""What waits to be written: changes and states, and incidents, up to a limit.

A loss is always reported: it must never look like a quiet time.

A state is written with the last change that led to it: a state ahead of its changes would make a
restart skip them.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import islice

from msgspec.structs import replace

from leases.domain.change import Change
from leases.domain.incident import Incident, Member
from leases.domain.lease import ObjectName
from leases.domain.split_dict import SplitDict
from leases.history.insert_incidents import CauseMark, IncidentBatch, Reviewed, Sweep

MAX_WAITING = 500_000  # changes; the first list of a large cluster makes 130,000 at once
_WAY_OUT = "Make room on the disk or repair the database: waiting changes are written then."


class Backlog:
    """Why nothing can be written, and what was lost."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self.most = most
        self.error: str | None = None
        self.lost: dict[str, int] = {}  # lost changes, by cluster
        self.let_names_go = False  # names of deleted Leases were dropped
        self._warned = False

    def is_near(self, waiting: int) -> bool:
        """Whether half of the limit is reached."""
        return waiting >= self.most // 2

    def warns(self, waiting: int) -> bool:
        """Return True once each time the limit comes near."""
        near = self.is_near(waiting)
        warns, self._warned = near and not self._warned, near
        return warns

    def says(self, waiting: int) -> str | None:
        """Describe the problem for the pages; None when all is well."""
        if self.error is None:
            return None
        said = f"History cannot be written: {self.error}. {waiting:,} changes wait in memory"
        lost = sum(self.lost.copy().values())  # the loop may add a cluster
        if lost:
            said += f", as many as may; {lost:,} later ones are lost"
        elif self.is_near(waiting):
            said += f"; from {self.most:,} on they are lost"
        if self.let_names_go:
            said += (
                ". Many Leases came and went, so the names of deleted ones are not kept. Their "
                "stored states are deleted once the database is back; nothing is lost by it"
            )
        return f"{said}. {_WAY_OUT}"


logger = logging.getLogger(__name__)

INCIDENTS_PER_WRITE = 50
SETTLED_PER_WRITE = 500
MARKS_PER_WRITE = 500
MAX_OWN = 10_000
OVER = 1000  # that are over; no change of an older one becomes part of another incident
SWEPT_AGAIN = timedelta(seconds=30)  # a change may be written after one that is newer
COPIES_PER_WRITE = 2000  # changes read for the stories, unless one incident has more


class IncidentQueue:
    """Of each incident the newest account waits, and of each change the newest cause."""

    def __init__(self, cluster: str, most: int = MAX_WAITING) -> None:
        self._cluster = cluster
        self._most = most
        self._reviewed: dict[str, Reviewed] = {}
        self._settled: dict[str, Reviewed] = {}  # as written before, but settled and over
        self._marks: dict[Member, CauseMark] = {}
        self._sweeps: dict[str, Sweep] = {}  # of incidents that do not list all their changes
        self._known: dict[str, Incident] = {}  # that may change, as reported last
        self._own: dict[str, None] = {}  # ids that this process reported lately
        self._lost = False

    def restore(self, incidents: Iterable[Incident], unmarked: set[Member]) -> None:
        """Note what an earlier run wrote; mark the changes that it had not marked yet."""
        for incident in incidents:
            self._known[incident.id] = incident
            self._own[incident.id] = None
            self._sweep(incident, None)
            causes = incident.causes
            for member in unmarked & causes.keys():
                self._marks[member] = CauseMark(member, causes[member], incident.id)

    def add(self, reviewed: Reviewed) -> None:
        incident = reviewed.incident
        if max(len(self._reviewed), len(self._marks)) >= self._most:
            if not self._lost:
                logger.error("%s: no room for more incidents in memory", self._cluster)
            self._lost = True
            return
        self._lost = False
        self._own.pop(incident.id, None)
        self._own[incident.id] = None
        if len(self._own) > MAX_OWN:
            del self._own[next(iter(self._own))]
        known = self._known.pop(incident.id, None)
        over = incident.settled and incident.ended is not None
        if not (incident.part_of or over):
            self._known[incident.id] = incident
        self._sweep(incident, known)
        waits = incident.id in self._reviewed
        if over and not waits and known is not None and replace(known, settled=True) == incident:
            self._settled[incident.id] = reviewed
            return
        self._settled.pop(incident.id, None)
        if over and incident.id in self._sweeps:
            # Were it stored as settled, a stop would leave the rest of its changes without a cause.
            self._settled[incident.id] = reviewed
            reviewed = Reviewed(replace(incident, settled=False), reviewed.at)
        self._reviewed[incident.id] = reviewed
        self._mark(incident, known)

    def _mark(self, incident: Incident, known: Incident | None) -> None:
        """Mark the changes whose cause or incident is not known yet."""
        marked = {} if known is None else known.causes
        for member, cause in incident.causes.items():
            if marked.get(member) is not cause:
                self._marks[member] = CauseMark(member, cause, incident.id)

    def _sweep(self, incident: Incident, known: Incident | None) -> None:
        """Mark the changes that are not listed: those that are new, all where the cause is new."""
        unlisted = incident.unlisted
        if unlisted is None:
            self._sweeps.pop(incident.id, None)
            return
        since, waits = unlisted.since, self._sweeps.get(incident.id)
        if known is not None and known.unlisted is not None:
            settles = incident.settled and not known.settled  # then all are looked at once more
            if known.unlisted == unlisted and known.cause is incident.cause and not settles:
                return
            if known.cause is incident.cause and not settles:
                since = max(since, known.unlisted.until - SWEPT_AGAIN)
                since = since if waits is None else min(since, waits.since)
        self._sweeps[incident.id] = Sweep(incident.id, incident.cause, since, unlisted.until)

    def take(self) -> IncidentBatch | None:
        """Take what fits into one transaction; None: nothing waits."""
        self._sweeps = {number: one for number, one in self._sweeps.items() if not one.is_done}
        if not (self._reviewed or self._settled or self._marks or self._sweeps):
            self._forget_own()
            return None
        taken: list[Reviewed] = []
        copies = 0
        for one in islice(self._reviewed.values(), INCIDENTS_PER_WRITE):
            copies += len(one.incident.members)
            if taken and copies > COPIES_PER_WRITE:
                break
            taken.append(one)
        for one in taken:
            del self._reviewed[one.incident.id]
        over = (one for number, one in self._settled.items() if number not in self._sweeps)
        settled = tuple(islice(over, SETTLED_PER_WRITE))
        for one in settled:
            del self._settled[one.incident.id]
        marks = tuple(islice(self._marks.values(), MARKS_PER_WRITE))
        for mark in marks:
            del self._marks[mark.member]
        sweep = None if self._marks else next(iter(self._sweeps.values()), None)
        own = frozenset(self._own)
        return IncidentBatch(self._cluster, tuple(taken), marks, own, sweep, settled)

    def _forget_own(self) -> None:
        """All is written: keep the ids of incidents that may change, and of the last others."""
        if len(self._own) > len(self._known) + OVER:
            over = [number for number in self._own if number not in self._known]
            for number in over[:-OVER]:
                del self._own[number]


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
    def is_empty(self) -> bool:
        return not (self._changes or self._changed)

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
        if changes and not self._changes:
            self._per_lease = SplitDict()  # an emptied dict keeps the room of all that it held
        return changes, list(states), self.is_empty

    def put_back(self, changes: list[Change], states: list[ObjectName]) -> None:
        """Undo a `take`, if nothing was added since."""
        self._changes.extendleft(reversed(changes))
        for change in changes:
            key = ObjectName(change.namespace, change.name)
            self._per_lease[key] = (self._per_lease.get(key) or 0) + 2
        self._add_names(states)
