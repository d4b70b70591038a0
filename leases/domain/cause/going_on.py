"""Incidents that outlive their episodes: each waits for somebody to hold its Leases again."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.clue import Clue, contender
from leases.domain.cause.facts import Knowledge
from leases.domain.cause.node_groups import GOES_ON, blind_times, one_more
from leases.domain.change import Change, ChangeType
from leases.domain.figures import watched_gap
from leases.domain.incident import Cause, Incident, Member, Standing
from leases.domain.kind import Kind
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

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._incidents: dict[str, Incident] = {}
        self._open: dict[str, set[ObjectName]] = {}  # the Leases that nobody holds yet
        self._of: dict[ObjectName, str] = {}
        self._members: dict[str, set[Member]] = {}
        self._crowds: set[str] = set()  # incidents whose Leases are not all listed
        self._news: dict[str, Incident] = {}
        self._cut: dict[str, datetime] = {}
        self._overruns: dict[str, datetime] = {}  # planned ones
        self._stopped_at: datetime | None = None  # of the run before

    def keep(
        self,
        incident: Incident,
        still_open: set[ObjectName],
        overruns_at: datetime | None = None,
    ) -> None:
        """Wait for the end of an incident; if it was planned, it takes too long from then on."""
        while len(self._incidents) >= MAX_KEPT:
            self._forget(next(iter(self._incidents)))
        self._incidents[incident.id] = incident
        self._open[incident.id] = still_open
        self._members[incident.id] = set(incident.members)
        if overruns_at is not None and incident.standing is Standing.PLANNED:
            self._overruns[incident.id] = overruns_at
        if incident.unlisted is not None and incident.unlisted.without:
            self._crowds.add(incident.id)
        for key in still_open:
            self._of[key] = incident.id

    def restore(self, incidents: Iterable[Incident], stopped_at: datetime | None = None) -> None:
        self._stopped_at = stopped_at
        for incident in incidents:
            if incident.ended is None or not incident.settled:
                self.keep(incident, _still_open(incident))

    def incidents(self) -> list[Incident]:
        return [one for one in self._incidents.values() if one.ended is None]

    def takes(self, clue: Clue) -> bool:
        """Add a change to the incident that its Lease is part of. Returns whether it is any."""
        number = self._of.get(clue.key)
        change = clue.change
        if number is None:
            return self._takes_unlisted(clue)
        if change.change not in _ENDS | _GOES_ON:
            return False
        if number in self._cut and change.change in _ENDS:
            self._is_over(number, clue.key)
            return False
        incident = self._incidents[number]
        member = clue.member
        if member in self._members[number]:
            return True
        self._members[number].add(member)
        gap = self._worst_gap(incident, change)
        incident = _replace(incident, members=(*incident.members, member), worst_gap_seconds=gap)
        if incident.standing is Standing.PLANNED and _took_long(clue):
            incident = _replace(incident, standing=Standing.OVERRAN)
        winner = contender(change.holder)
        if incident.cause is Cause.CRASH and winner is not None and winner.host in incident.hosts:
            sentence = f"{incident.sentence}; it was started anew"
            incident = _replace(incident, cause=Cause.RESTART_IN_PLACE, sentence=sentence)
        if change.change in _ENDS or change.change is ChangeType.DELETED:
            del self._of[clue.key]
            self._open[number].discard(clue.key)
            if not self._goes_on(number):
                incident = _replace(incident, ended=change.at)
        self._incidents[number] = self._news[number] = incident
        return True

    def _worst_gap(self, incident: Incident, change: Change) -> float | None:
        blind = blind_times(self._known.breaks, change.at)
        return max(incident.worst_gap_seconds or 0.0, watched_gap(change, blind) or 0.0) or None

    def _takes_unlisted(self, clue: Clue) -> bool:
        """Add how a heartbeat goes on that an incident has without listing it."""
        change = clue.change
        if change.kind is not Kind.HEARTBEAT or change.change not in GOES_ON:
            return False
        number = next((one for one in self._crowds if one not in self._cut), None)
        if number is None:
            return False
        incident = self._incidents[number]
        known = incident.unlisted
        if known is None or change.at < known.since:
            return False
        unlisted = one_more(known, change.at, leases=known.leases, opened=-1)
        gap = self._worst_gap(incident, change)
        incident = _replace(incident, unlisted=unlisted, worst_gap_seconds=gap)
        if not unlisted.without:
            self._crowds.discard(number)
            if not self._goes_on(number):
                incident = _replace(incident, ended=change.at)
        self._incidents[number] = self._news[number] = incident
        return True

    def _goes_on(self, number: str) -> bool:
        """Whether nobody holds a Lease of it."""
        return bool(self._open[number]) or number in self._crowds

    def cut(self, at: datetime) -> None:
        """What comes after that moment belongs to none of them: each ended then, or goes on."""
        self._cut |= {number: at for number, one in self._incidents.items() if one.began <= at}
        self._crowds -= self._cut.keys()

    def _is_over(self, number: str, key: ObjectName) -> None:
        """A Lease of it has a holder again, after a time that nobody can tell about."""
        del self._of[key]
        self._open[number].discard(key)
        if not self._open[number]:
            one = _replace(self._incidents[number], ended=self._cut[number])
            self._incidents[number] = self._news[number] = one

    def review(self, now: datetime) -> list[Incident]:
        """Return what changed, and settle what an earlier run left."""
        for number, one in list(self._incidents.items()):
            if not one.settled and now - (one.ended or one.began) >= SETTLED_AFTER:
                # One that flapped at the stop has no Lease whose holder would end it.
                over_at = self._stopped_at or now
                ended = one.ended if self._goes_on(number) else one.ended or over_at
                settled = _replace(one, settled=True, ended=ended)
                self._incidents[number] = self._news[number] = settled
        for number in [one for one, at in self._overruns.items() if at <= now]:
            del self._overruns[number]
            if self._incidents[number].ended is None:
                took_long = _replace(self._incidents[number], standing=Standing.OVERRAN)
                self._incidents[number] = self._news[number] = took_long
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
        return min((*waiting, *self._overruns.values()), default=None)

    def _forget(self, number: str) -> None:
        del self._incidents[number]
        self._cut.pop(number, None)
        self._overruns.pop(number, None)
        self._members.pop(number, None)
        self._crowds.discard(number)
        for key in self._open.pop(number):
            if self._of.get(key) == number:
                del self._of[key]


def _took_long(clue: Clue) -> bool:
    """Whether this ends a time without a holder that was longer than its Lease lasts."""
    lasts = None if clue.after is None else clue.after.spec.lease_duration_seconds
    waited = clue.change.gap_seconds
    if clue.change.kind is Kind.LOCK or lasts is None or waited is None:
        return False
    return waited > lasts


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
