"""Incidents of one cluster, and the causes of changes, that wait to be written."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice

from msgspec.structs import replace

from leases.domain.cause.incident import Incident, Member
from leases.history.write.backlog import MAX_WAITING
from leases.history.write.insert_incidents import CauseMark, IncidentBatch, Reviewed

logger = logging.getLogger(__name__)

INCIDENTS_PER_WRITE = 50
SETTLED_PER_WRITE = 500
MARKS_PER_WRITE = 500
MAX_OWN = 10_000
COPIES_PER_WRITE = 2000  # changes read for the stories, unless one incident has more


class IncidentQueue:
    """Of each incident the newest account waits, and of each change the newest cause."""

    def __init__(self, cluster: str, most: int = MAX_WAITING) -> None:
        self._cluster = cluster
        self._most = most
        self._reviewed: dict[str, Reviewed] = {}
        self._settled: dict[str, Reviewed] = {}  # as written before, but settled and over
        self._marks: dict[Member, CauseMark] = {}
        self._known: dict[str, Incident] = {}  # that may change, as reported last
        self._own: dict[str, None] = {}  # ids that this process reported lately
        self._lost = False

    def restore(self, incidents: Iterable[Incident], unmarked: set[Member]) -> None:
        """Note what an earlier run wrote; mark the changes that it had not marked yet."""
        for incident in incidents:
            self._known[incident.id] = incident
            self._own[incident.id] = None
            for member in unmarked.intersection(incident.members):
                self._marks[member] = CauseMark(member, incident.cause, incident.id)

    def add(self, reviewed: Reviewed) -> None:
        incident = reviewed.incident
        if max(len(self._reviewed), len(self._marks)) >= self._most:
            if not self._lost:
                logger.error("%s: no room for more incidents in memory", self._cluster)
            self._lost = True
            return
        self._lost = False
        self._own[incident.id] = None
        if len(self._own) > MAX_OWN:
            del self._own[next(iter(self._own))]
        known = self._known.pop(incident.id, None)
        over = incident.settled and incident.ended is not None
        if not (incident.part_of or over):
            self._known[incident.id] = incident
        waits = incident.id in self._reviewed
        if over and not waits and known is not None and replace(known, settled=True) == incident:
            self._settled[incident.id] = reviewed
            return
        self._settled.pop(incident.id, None)
        self._reviewed[incident.id] = reviewed
        self._mark(incident, known)

    def _mark(self, incident: Incident, known: Incident | None) -> None:
        """Mark the changes whose cause or incident is not known yet."""
        same = known is not None and known.cause is incident.cause
        marked = frozenset(known.members) if known is not None and same else frozenset[Member]()
        for member in incident.members:
            if member not in marked:
                self._marks[member] = CauseMark(member, incident.cause, incident.id)

    def take(self) -> IncidentBatch | None:
        """Take what fits into one transaction; None: nothing waits."""
        if not (self._reviewed or self._settled or self._marks):
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
        settled = tuple(islice(self._settled.values(), SETTLED_PER_WRITE))
        for one in settled:
            del self._settled[one.incident.id]
        marks = tuple(islice(self._marks.values(), MARKS_PER_WRITE))
        for mark in marks:
            del self._marks[mark.member]
        return IncidentBatch(
            self._cluster, tuple(taken), marks, own=frozenset(self._own), settled=settled
        )
