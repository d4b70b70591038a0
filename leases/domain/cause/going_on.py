"""Incidents whose cause is settled but that have not ended, or that an earlier run left open."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.clue import Clue
from leases.domain.cause.incident import Incident
from leases.domain.changes.change import ChangeType
from leases.domain.lease import ObjectName

_replace = msgspec.structs.replace

SETTLED_AFTER = timedelta(seconds=120)
MAX_KEPT = 5000
_ENDS = frozenset(
    {
        ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.RECOVERED, ChangeType.CREATED,
        ChangeType.RESTARTED, ChangeType.REPLACED,
    }
)  # fmt: skip
_GOES_ON = frozenset({ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED})


class GoingOn:
    """Each waits for somebody to hold its Leases again."""

    def __init__(self) -> None:
        self._incidents: dict[str, Incident] = {}
        self._open: dict[str, set[ObjectName]] = {}  # the Leases that nobody holds yet
        self._of: dict[ObjectName, str] = {}
        self._news: dict[str, Incident] = {}

    def keep(self, incident: Incident, still_open: set[ObjectName]) -> None:
        """Wait for the end of an incident."""
        while len(self._incidents) >= MAX_KEPT:
            self._forget(next(iter(self._incidents)))
        self._incidents[incident.id] = incident
        self._open[incident.id] = still_open
        for key in still_open:
            self._of[key] = incident.id

    def restore(self, incidents: Iterable[Incident]) -> None:
        for incident in incidents:
            if incident.ended is None or not incident.settled:
                self.keep(incident, _still_open(incident))

    def incidents(self) -> list[Incident]:
        return [one for one in self._incidents.values() if one.ended is None]

    def takes(self, clue: Clue) -> bool:
        """Add a change to the incident that its Lease is part of. Returns whether it is any."""
        number = self._of.get(clue.key)
        change = clue.change
        if number is None or change.change not in _ENDS | _GOES_ON:
            return False
        incident = self._incidents[number]
        member = clue.member
        if member in incident.members:
            return True
        gap = max(incident.worst_gap_seconds or 0.0, change.gap_seconds or 0.0) or None
        incident = _replace(incident, members=(*incident.members, member), worst_gap_seconds=gap)
        if change.change in _ENDS or change.change is ChangeType.DELETED:
            del self._of[clue.key]
            self._open[number].discard(clue.key)
            if not self._open[number]:
                incident = _replace(incident, ended=change.at)
        self._incidents[number] = self._news[number] = incident
        return True

    def review(self, now: datetime) -> list[Incident]:
        """Return what changed, and settle what an earlier run left."""
        for number, one in list(self._incidents.items()):
            if not one.settled and now - (one.ended or one.began) >= SETTLED_AFTER:
                # One that flapped at the stop has no Lease whose holder would end it.
                ended = one.ended if self._open[number] else one.ended or now
                settled = _replace(one, settled=True, ended=ended)
                self._incidents[number] = self._news[number] = settled
        news = list(self._news.values())
        self._news.clear()
        for incident in news:
            if incident.settled and incident.ended is not None:
                self._forget(incident.id)
        return news

    def next_review(self) -> datetime | None:
        waiting = [
            (one.ended or one.began) + SETTLED_AFTER
            for one in self._incidents.values()
            if not one.settled
        ]
        return min(waiting, default=None)

    def _forget(self, number: str) -> None:
        del self._incidents[number]
        for key in self._open.pop(number):
            if self._of.get(key) == number:
                del self._of[key]


def _still_open(incident: Incident) -> set[ObjectName]:
    """Return the Leases that nobody held when the incident was stored.

    An identity has the word of its change after the uid; `term` is also a release, which stands
    alone as long as nobody has acquired.
    """
    if incident.ended is not None:
        return set()
    words: dict[ObjectName, list[str]] = {}
    for member in incident.members:
        words.setdefault(member.lease, []).append(f"{member.identity} ".split(" ")[1])
    return {
        key for key, seen in words.items() if seen[-1] in ("expired", "deleted") or seen == ["term"]
    }
