"""Incidents that outlive their episodes: each waits for somebody to hold its Leases again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from leases.domain.cause.clue import Clue, Episode, contender
from leases.domain.cause.facts import Break, Knowledge
from leases.domain.cause.node_groups import GOES_ON, one_more
from leases.domain.cause.unwatched import nobody_took_it
from leases.domain.change import Change, ChangeType
from leases.domain.election import RETRY_SHARE, STRETCH
from leases.domain.figures import LONG_GAP_SECONDS, Span, held, watched_gap
from leases.domain.incident import Cause, Incident, Member, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import plus

_replace = msgspec.structs.replace

SETTLED_AFTER = timedelta(seconds=120)
MAX_KEPT = 5000
USUAL_DURATION = 15.0  # seconds, of leaderelection in client-go
AT_LEAST = timedelta(milliseconds=100)  # until the next look at a time without a holder
ENDS = frozenset(
    {
        ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.RECOVERED, ChangeType.CREATED,
        ChangeType.RESTARTED, ChangeType.REPLACED,
    }
)  # fmt: skip
_GOES_ON = frozenset({ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED})


def so_far(incident: Incident, now: datetime, blind: Sequence[Span]) -> Incident:
    """Return the incident with the time without a holder that goes on, as of `now`.

    Nobody watched in the times of `blind`. Every review, page and file asks here.
    """
    since = incident.unheld_since
    if since is None or incident.ended is not None:
        return incident
    worst = longest(incident.worst_gap_seconds, since, now, blind)
    return _replace(incident, worst_gap_seconds=worst)


def longest(worst: float | None, since: datetime, now: datetime, blind: Sequence[Span]) -> float:
    """Return the longest time without a holder: the `worst` that ended, or that since then."""
    return max(worst or 0.0, held(since, now, blind).watched)


def graver_at(incident: Incident, now: datetime, blind: Sequence[Span]) -> datetime | None:
    """Return when nobody held a Lease of it for long, if it goes on and is watched from now on."""
    since = incident.unheld_since
    if since is None or _is_long(incident):
        return None
    left = LONG_GAP_SECONDS - held(since, now, blind).watched
    return now + max(timedelta(seconds=left), AT_LEAST)


def as_of(
    incident: Incident, now: datetime, blind: Sequence[Span]
) -> tuple[Incident, datetime | None]:
    """Return the incident as of `now`, and when it will be graver."""
    incident = so_far(incident, now, blind)
    return incident, graver_at(incident, now, blind)


def is_news(incident: Incident, known: Incident) -> bool:
    """Whether it differs from what is known by more than the time that passed."""
    worst, before = incident.worst_gap_seconds, known.worst_gap_seconds
    if incident.unheld_since is not None and (worst or 0.0) > (before or 0.0):
        same = _replace(incident, worst_gap_seconds=before) == known
        return not same or _is_long(incident) is not _is_long(known)
    return incident != known


def _is_long(incident: Incident) -> bool:
    return (incident.worst_gap_seconds or 0.0) >= LONG_GAP_SECONDS


class Wait(NamedTuple):
    """A Lease waits for a holder since then; it was planned to, for so many seconds at most."""

    since: datetime
    seconds: float

    def overran(self, now: datetime, blind: Sequence[Span]) -> bool:
        return held(self.since, now, blind).watched >= self.seconds

    def overruns_at(self, now: datetime, blind: Sequence[Span] = ()) -> datetime:
        """Return when it takes too long, if it is watched from now on."""
        left = self.seconds - held(self.since, now, blind).watched
        return plus(now, max(timedelta(seconds=left), AT_LEAST))


def waiting(episodes: Iterable[Episode]) -> list[tuple[Episode, Wait]]:
    """Return those whose Lease waits for a holder."""
    open_ones = ((one, one.unheld_since) for one in episodes if one.ended_at is None)
    return [(one, Wait(since, one.duration)) for one, since in open_ones if since is not None]


class GoingOn:
    """Each waits for somebody to hold its Leases again."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._incidents: dict[str, Incident] = {}
        # The Leases that nobody holds yet, and since when, if anybody waits for it.
        self._open: dict[str, dict[ObjectName, datetime | None]] = {}
        self._crowd_since: dict[str, datetime] = {}  # since then at least, nobody holds the others
        self._restored: set[str] = set()  # only the longest wait among their Leases is known
        self._graver: dict[str, datetime] = {}  # when nobody held a Lease of them for long
        self._of: dict[ObjectName, str] = {}
        self._members: dict[str, set[Member]] = {}
        self._crowds: set[str] = set()  # incidents whose Leases are not all listed
        self._news: dict[str, Incident] = {}
        self._cut: set[str] = set()  # what comes now does not tell why they began
        self._planned: dict[str, tuple[datetime, Wait]] = {}  # and when to look at it again
        # Those that were over lately, without whoever ended them, and since when he was waited for.
        self._ends: dict[str, tuple[Incident, datetime, Clue]] = {}
        self._stopped_at: datetime | None = None  # of the run before

    def keep(
        self,
        incident: Incident,
        still_open: dict[ObjectName, datetime | None],
        waits: Iterable[Wait] = (),
        crowd_since: datetime | None = None,
    ) -> None:
        """Wait for the end of an incident; if it was planned, that may take too long."""
        while len(self._incidents) >= MAX_KEPT:
            self._forget(next(iter(self._incidents)))
        self._incidents[incident.id] = incident
        self._open[incident.id] = still_open
        self._members[incident.id] = set(incident.members)
        if incident.standing is Standing.PLANNED:
            found = [(one.overruns_at(one.since), one) for one in waits]
            self._planned |= {incident.id: min(found)} if found else {}
        if incident.unlisted is not None and incident.unlisted.without:
            self._crowds.add(incident.id)
            if crowd_since is not None:
                self._crowd_since[incident.id] = crowd_since
        for key in still_open:
            self._of[key] = incident.id
        self._look_again(incident)

    def restore(
        self,
        incidents: Iterable[Incident],
        stopped_at: datetime | None = None,
        wait_of: Callable[[ObjectName], Wait | None] = lambda _: None,
    ) -> None:
        """`wait_of`: since when a Lease waits; how long it lasted may be unknown."""
        self._stopped_at = stopped_at
        for incident in incidents:
            if incident.ended is None or not incident.settled:
                since, lost = incident.unheld_since, incident.still_open
                known = {key: wait_of(key) for key in lost} if since is not None else {}
                waits = {key: one for key, one in known.items() if one is not None}
                if len(waits) < len(lost) or incident.unlisted is not None:
                    self._restored.add(incident.id)
                found = [
                    Wait(one.since, max(one.seconds, USUAL_DURATION)) for one in waits.values()
                ]
                still_open = {key: waits[key].since if key in waits else since for key in lost}
                self.keep(incident, still_open, found, since)

    def _look_again(self, incident: Incident) -> None:
        """Look at it when nobody will have held a Lease of it for long, if it is watched."""
        since = incident.unheld_since
        if since is not None and not _is_long(incident):
            self._graver[incident.id] = plus(since, timedelta(seconds=LONG_GAP_SECONDS))

    def _waits(self, incident: Incident, change: Change) -> Incident:
        """Return it with what is known after this change of when its Leases lost their holders."""
        number = incident.id
        crowd = [self._crowd_since[number]] if number in self._crowd_since else []
        found = [one for one in self._open[number].values() if one is not None]
        if number in self._crowds:
            found += crowd
        since = min(found, default=None)
        if since is not None and number in self._restored:
            # Which one waits since the earliest moment is not known: it may be this one.
            since = max(since, change.at)
            self._restored.discard(number)
            self._open[number] = dict.fromkeys(self._open[number], since)
            self._crowd_since[number] = since
        incident = _replace(incident, unheld_since=since)
        self._graver.pop(number, None)
        self._look_again(incident)
        return incident

    def incidents(self) -> list[Incident]:
        return [one for one in self._incidents.values() if one.ended is None]

    def takes(self, clue: Clue) -> bool:
        """Add a change to the incident that its Lease is part of. Returns whether it is any."""
        number = self._of.get(clue.key)
        change = clue.change
        if number is None:
            return self._takes_unlisted(clue)
        if change.change not in ENDS | _GOES_ON:
            return False
        before = incident = self._incidents[number]
        member = clue.member
        if member in self._members[number]:
            return True
        self._members[number].add(member)
        gap = self._worst_gap(incident, change)
        incident = _replace(incident, members=(*incident.members, member), worst_gap_seconds=gap)
        if clue.own_cause is not None:
            own = (*incident.own_causes, (member, clue.own_cause))
            incident = _replace(incident, own_causes=own)
        if incident.standing is Standing.PLANNED and self._took_long(clue):
            incident = _replace(incident, standing=Standing.OVERRAN)
        if number not in self._cut:
            incident = _retold(incident, clue)
        if change.change in ENDS or change.change is ChangeType.DELETED:
            del self._of[clue.key]
            since = self._open[number].pop(clue.key) or incident.began
            incident = self._waits(incident, change)
            if not self._goes_on(number):
                if change.change in ENDS:
                    self._ends[number] = before, since, clue
                incident = _replace(incident, ended=change.at, unheld_since=None)
        self._incidents[number] = self._news[number] = incident
        return True

    def waited_out(self, since: datetime, clue: Clue) -> Break | None:
        """Return the time in which nobody could write any Lease, between a loss and whoever came
        soon after it; a person can come at any time, and a holder that renews again was not waited
        for.

        A contender that begins anew waits for the duration of the Lease, and comes with its next
        check: see client-go's tools/leaderelection.
        """
        change = clue.change.change
        if change not in ENDS or change is ChangeType.RECOVERED or clue.by_person:
            return None
        lasts = None if clue.after is None else clue.after.spec.lease_duration_seconds
        within = timedelta(seconds=(lasts or USUAL_DURATION) * (1 + RETRY_SHARE * STRETCH))
        return self._known.kept_waiting(since, clue.change.at, within)

    def divide(self) -> Iterator[tuple[Clue, Break]]:
        """Let each incident end where an outage began, if one stood between it and whoever took
        its last Lease. Yields what belongs to the outage.
        """
        for number, (incident, since, clue) in tuple(self._ends.items()):
            outage = self.waited_out(since, clue)
            if outage is not None:
                del self._ends[number]
                divided = _replace(
                    so_far(incident, outage.since, self._known.blind(clue.change.at)),
                    ended=outage.since,
                    unheld_since=None,
                    sentence=nobody_took_it(incident.sentence, outage.since),
                )
                self._news[number] = divided
                if number in self._incidents:
                    self._incidents[number] = divided
                yield clue, outage

    def _worst_gap(self, incident: Incident, change: Change) -> float | None:
        blind = self._known.blind(change.at)
        if change.change is ChangeType.DELETED:  # nobody holds it until then
            incident = so_far(incident, change.at, blind)
        return max(incident.worst_gap_seconds or 0.0, watched_gap(change, blind) or 0.0) or None

    def _took_long(self, clue: Clue) -> bool:
        """Whether this ends a time without a holder that was longer than its Lease lasts."""
        change = clue.change
        lasts = None if clue.after is None else clue.after.spec.lease_duration_seconds
        waited = watched_gap(change, self._known.blind(change.at))
        if change.kind is Kind.LOCK or lasts is None or waited is None:
            return False
        return waited > lasts

    def _takes_unlisted(self, clue: Clue) -> bool:
        """Add how a heartbeat goes on that an incident has without listing it."""
        change = clue.change
        if change.kind is not Kind.HEARTBEAT or change.change not in GOES_ON:
            return False
        number = next(iter(self._crowds), None)
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
            incident = self._waits(incident, change)
            if not self._goes_on(number):
                incident = _replace(incident, ended=change.at, unheld_since=None)
        self._incidents[number] = self._news[number] = incident
        return True

    def _goes_on(self, number: str) -> bool:
        """Whether nobody holds a Lease of it."""
        return bool(self._open[number]) or number in self._crowds

    def cut(self, at: datetime) -> None:
        """What comes after that moment ends them, and does not tell why they began."""
        self._cut |= {number for number, one in self._incidents.items() if one.began <= at}

    def review(self, now: datetime) -> list[Incident]:
        """Return what changed, and settle what an earlier run left."""
        for number, one in list(self._incidents.items()):
            if not one.settled and now - (one.ended or one.began) >= SETTLED_AFTER:
                # One that flapped at the stop has no Lease whose holder would end it.
                over_at = self._stopped_at or now
                ended = one.ended if self._goes_on(number) else one.ended or over_at
                since = one.unheld_since if ended is None else None
                settled = _replace(one, settled=True, ended=ended, unheld_since=since)
                self._incidents[number] = self._news[number] = settled
        for number in [one for one, (_, _, clue) in self._ends.items() if _is_old(clue, now)]:
            del self._ends[number]
        self._let_them_grow(now)
        self._find_what_overran(now)
        news = list(self._news.values())
        self._news.clear()
        for incident in news:
            is_here = incident.id in self._incidents
            if is_here and incident.settled and incident.ended is not None:
                self._forget(incident.id)
        return news

    def _let_them_grow(self, now: datetime) -> None:
        """Report those of which nobody held a Lease for long by now."""
        due = [number for number, at in self._graver.items() if at <= now]
        blind = self._known.blind(now) if due else ()
        for number in due:
            del self._graver[number]
            one = so_far(self._incidents[number], now, blind)
            at = graver_at(one, now, blind)
            if at is not None:
                self._graver[number] = at
            elif one.ended is None:
                self._incidents[number] = self._news[number] = one

    def _find_what_overran(self, now: datetime) -> None:
        due = [number for number, (at, _) in self._planned.items() if at <= now]
        blind = self._known.blind(now) if due else ()
        for number in due:
            one, (_, wait) = self._incidents[number], self._planned.pop(number)
            if one.ended is None and wait.overran(now, blind):
                took_long = _replace(one, standing=Standing.OVERRAN)
                self._incidents[number] = self._news[number] = took_long
            elif one.ended is None:
                self._planned[number] = wait.overruns_at(now, blind), wait

    def next_review(self) -> datetime | None:
        waiting = [
            (one.ended or one.began) + SETTLED_AFTER
            for one in self._incidents.values()
            if not one.settled
        ]
        waiting += [at for at, _ in self._planned.values()]
        return min((*waiting, *self._graver.values()), default=None)

    def _forget(self, number: str) -> None:
        del self._incidents[number]
        self._cut.discard(number)
        self._planned.pop(number, None)
        self._graver.pop(number, None)
        self._crowd_since.pop(number, None)
        self._restored.discard(number)
        self._members.pop(number, None)
        self._crowds.discard(number)
        for key in self._open.pop(number):
            if self._of.get(key) == number:
                del self._of[key]


def _is_old(clue: Clue, now: datetime) -> bool:
    return now - clue.change.observed_at >= SETTLED_AFTER


def _retold(incident: Incident, clue: Clue) -> Incident:
    """Return it as its end tells it: its process came back."""
    winner = contender(clue.change.holder)
    came_back = winner is not None and winner.host in incident.hosts and not clue.by_person
    if incident.cause is Cause.CRASH and came_back:
        sentence = f"{incident.sentence}; it was started anew"
        incident = _replace(incident, cause=Cause.RESTART_IN_PLACE, sentence=sentence)
    return incident
