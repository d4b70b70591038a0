"""The open incidents of one cluster: clues and facts go in, incidents come out.

Stateful, but without clock and IO: the caller passes `now` and looks up the questions.
"""

import heapq
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import count

import msgspec

from leases.domain.cause.clue import (
    Clue,
    Episode,
    LateRenewal,
    UsualWriters,
    contender,
    opens,
    remember,
)
from leases.domain.cause.facts import Break, Fact, Knowledge, Question
from leases.domain.cause.groups import (
    ReportedAs,
    given_up,
    grouped,
    incident_id,
    incident_of,
    withdrawn,
)
from leases.domain.cause.inquiry import Inquiries
from leases.domain.cause.node_groups import Census
from leases.domain.cause.rules.api import api_trouble
from leases.domain.cause.rules.handover import by_shape, scaled_down, stopped
from leases.domain.cause.rules.place import drained, evicted, heartbeat, node_down
from leases.domain.cause.rules.process import cut_off, ended, gave_up, killed_for_memory, starved
from leases.domain.cause.rules.writes import by_hand, deleted, preferred, wrong_clock
from leases.domain.cause.scene import Group, Judged, Scene, Verdict, clock, possible, seen
from leases.domain.cause.unwatched import told, unwatched_time
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence, Incident, Source
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, MissedTime

_replace = msgspec.structs.replace


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
        self._cut: dict[str, datetime] = {}

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
        if number in self._cut and change.change in _ENDS:
            self._is_over(number, clue.key)
            return False
        incident = self._incidents[number]
        member = clue.member
        if member in incident.members:
            return True
        gap = max(incident.worst_gap_seconds or 0.0, change.gap_seconds or 0.0) or None
        incident = _replace(incident, members=(*incident.members, member), worst_gap_seconds=gap)
        winner = contender(change.holder)
        if incident.cause is Cause.CRASH and winner is not None and winner.host in incident.hosts:
            sentence = f"{incident.sentence}; it was started anew"
            incident = _replace(incident, cause=Cause.RESTART_IN_PLACE, sentence=sentence)
        if change.change in _ENDS or change.change is ChangeType.DELETED:
            del self._of[clue.key]
            self._open[number].discard(clue.key)
            if not self._open[number]:
                incident = _replace(incident, ended=change.at)
        self._incidents[number] = self._news[number] = incident
        return True

    def cut(self, at: datetime) -> None:
        """What comes after that moment belongs to none of them: each ended then, or goes on."""
        self._cut |= {number: at for number, one in self._incidents.items() if one.began <= at}

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
        self._cut.pop(number, None)
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


Rule = Callable[[Scene], Verdict | None]


def _died_at_once(scene: Scene) -> Verdict | None:
    """A container that ended with its last renewal was not starved, however late that came."""
    pod = scene.ended()
    if pod is None or gave_up(scene.episode, pod) or scene.episode.opening is ChangeType.RELEASED:
        return None
    return None if scene.stopped() else ended(scene)


_RULES: tuple[Rule, ...] = (
    by_hand,
    preferred,
    api_trouble,
    deleted,
    wrong_clock,
    killed_for_memory,
    evicted,
    drained,
    node_down,
    heartbeat,
    _died_at_once,
    starved,
    scaled_down,
    stopped,
    ended,
    cut_off,
    by_shape,
)


def judge(scene: Scene) -> Verdict:
    """Return the verdict on one episode, from what is known now."""
    best: Verdict | None = None
    for rule in _RULES:
        verdict = rule(scene)
        if verdict is None:
            continue
        if verdict.confidence is not Confidence.POSSIBLE:
            return verdict
        best = best or verdict
    return best or _unknown(scene)


def _unknown(scene: Scene) -> Verdict:
    episode = scene.episode
    loser = "its holder" if episode.loser is None else episode.loser.host
    at = clock(episode.at)
    if episode.kind is Kind.LOCK and episode.opening is ChangeType.EXPIRED:
        return possible(Cause.UNKNOWN, f"The lock {scene.lease} ran out at {at} in {loser}'s hands")
    if episode.opening in (ChangeType.EXPIRED, ChangeType.TAKEN_OVER):
        sentence = f"{loser} stopped renewing {scene.lease} at {clock(episode.lost_at)}"
        fact = seen(Source.LEASES, f"it ran out at {at}; nothing else tells why")
        return possible(Cause.CRASH, sentence, fact)
    word = episode.opening.value.replace("_", " ")
    return possible(Cause.UNKNOWN, f"{scene.lease} was {word} at {at}: nothing tells why")


SETTLED_AFTER = timedelta(seconds=120)
# Incidents that are not certain are reported after this time: what belongs together comes soon.
FIRST_REPORTED_AFTER = timedelta(seconds=2)
BETWEEN_REVIEWS = timedelta(seconds=1)
# When the time that passed may change a verdict: see the rules of handover and writes.
LOOK_AGAIN = tuple(timedelta(seconds=seconds) for seconds in (2, 26, 31))
EPISODES_A_SECOND = 300
MAX_EPISODES = 5000


class Casebook:
    def __init__(self, cluster: str, *, hosted: bool = False) -> None:
        """`hosted`: the cluster is the Lease API of this very process."""
        self._cluster = cluster
        self._hosted = hosted
        self._known = Knowledge(hosted=hosted)
        self._inquiries = Inquiries(self._known)
        self._episodes: dict[int, Episode] = {}
        self._latest: dict[ObjectName, Episode] = {}
        self._judged: dict[int, Judged] = {}  # what need not be judged again
        self._about: dict[str, set[int]] = {}  # name of an object -> episodes that it concerns
        self._names: dict[int, set[str]] = {}  # the other way round
        self._incident_of: dict[int, str] = {}
        self._spent: dict[str, int] = {}  # questions asked for each incident
        self._reported: dict[str, Incident] = {}
        self._reported_as: dict[str, ReportedAs] = {}
        self._going_on = GoingOn()
        self._times: list[tuple[datetime, int, int]] = []
        self._serial = count()
        self._census = Census()
        self._dirty = False
        self._reviewed_at: datetime | None = None
        self._writers = UsualWriters()
        self._births: dict[ObjectName, Clue] = {}

    def note(self, clue: Clue) -> None:
        """Add one change."""
        clue = self._writers.note(clue)
        change, key = clue.change, clue.key
        episode = self._latest.get(key)
        if episode is not None and episode.cut_at is not None:
            episode.is_over = True
            del self._latest[key]
            self._touch(episode, change.observed_at)
        elif episode is not None and episode.takes(clue):
            episode.add(clue)
            self._touch(episode, change.observed_at)
            if episode.kind is Kind.HEARTBEAT and not episode.open:
                self._node_came_back(episode, change.observed_at)
            return
        if self._going_on.takes(clue):
            self._dirty = True
            return
        if opens(clue):
            self._open(Episode(clue))
        elif change.change is ChangeType.CREATED and not change.inferred:
            remember(self._births, key, clue)

    def late(self, renewal: LateRenewal) -> None:
        """Add a renewal that nearly came too late. Clues carry them, so nothing is kept here."""

    def watch(self, connection: Connection, now: datetime) -> None:
        """Our own watch broke, or lives again."""
        found = self._known.watch(connection, now)
        if found is not None:
            self._judge_again(found)

    def count(self, heartbeats: int, silent: int) -> None:
        """Note how many heartbeats the cluster has, and how many have expired."""
        earlier = self._census.silent if self._episodes else 0
        self._census = Census(heartbeats, max(silent, earlier))

    def missed(self, missed: MissedTime) -> None:
        """Nobody watched in that time, or more is known of it now."""
        found = self._known.missed(missed)
        if found.hosted:
            self._end_before(found.since)
        self._judge_again(found)

    def _end_before(self, at: datetime) -> None:
        """What went on when the Lease API stood still takes nothing that comes after."""
        self._going_on.cut(at)
        for episode in self._latest.values():
            if episode.open and episode.last.change.at <= at:
                episode.cut_at = episode.cut_at or at

    def _judge_again(self, found: Break) -> None:
        """Forget the judgements that a time without a watch may change."""
        # What was over before it is judged without it.
        later = [number for number, one in self._judged.items() if one.at >= found.since]
        for number in later:
            del self._judged[number]
        self._dirty = self._dirty or bool(later)

    def learn(self, facts: Iterable[Fact]) -> None:
        """Add what the cluster answered."""
        refusals = len(self._known.refusals)
        names = self._known.learn(facts)
        if len(self._known.refusals) > refusals:  # report again, with what could not be read
            self._reported_as.clear()
            self._dirty = True
        for name in names:
            for number in self._about.get(name, ()):
                episode = self._episodes.get(number)
                if episode is not None:
                    self._judged.pop(number, None)
                    self._dirty = True
                    self._inquiries.again(episode, self._reviewed_at or episode.at)

    def questions(self, now: datetime) -> list[Question]:
        """Return what to look up now, the most conclusive first."""
        due = self._inquiries.next()
        if due is None or due > now:
            return []
        return self._inquiries.questions(
            now,
            lambda one: self._judge(one, now).verdict,
            lambda one: self._incident_of.get(id(one), ""),
            self._spent,
        )

    def review(self, now: datetime) -> list[Incident]:
        """Return the incidents that are new, or differ since the last review.

        One without members is withdrawn: its changes belong to the incident `part_of` now.
        """
        due = self.next_review(now)
        if due is None or due > now:
            return []
        self._reviewed_at = now
        self._dirty = False
        while self._times and self._times[0][0] <= now:
            number = heapq.heappop(self._times)[2]
            episode = self._episodes.get(number)
            if episode is not None and episode.open:  # else time alone changes no verdict
                self._judged.pop(number, None)
        known = self._judged
        judged = [known.get(key) or self._judge(one, now) for key, one in self._episodes.items()]
        groups = grouped(judged, self._known.breaks, self._census)
        news = [one for group in groups for one in self._report(group, now)]
        news += self._withdraw({group.episodes[0].number for group in groups}, groups)
        return news + self._going_on.review(now)

    def next_review(self, now: datetime) -> datetime | None:
        """Return when to review again; None: not before the next clue or fact."""
        due = self._times[0][0] if self._times else None
        later = self._going_on.next_review()
        if later is not None:
            due = later if due is None else min(due, later)
        if self._dirty:
            due = now
        if due is None:
            return None
        if self._reviewed_at is None:
            return due
        # The more there is to review, the less often.
        pause = BETWEEN_REVIEWS * (1 + len(self._episodes) / EPISODES_A_SECOND)
        return max(due, self._reviewed_at + pause)

    def restore(self, incidents: Iterable[Incident], stopped_at: datetime | None = None) -> None:
        """Go on with the incidents that were open at the last stop."""
        self._going_on.restore(incidents)
        if stopped_at is not None:
            self._known.stopped(stopped_at)
            if self._hosted:
                self._going_on.cut(stopped_at)

    @property
    def breaks(self) -> list[Break]:
        """The times that nobody watched, oldest first."""
        return list(self._known.breaks)

    def remember(self, breaks: Iterable[Break]) -> None:
        """Know the times that nobody watched from an earlier casebook."""
        self._known.breaks.extend(breaks)

    def going_on(self) -> list[Incident]:
        """Return the incidents that have not ended."""
        reported = [one for one in self._reported.values() if one.ended is None and one.members]
        return reported + self._going_on.incidents()

    def _open(self, episode: Episode) -> None:
        if len(self._episodes) >= MAX_EPISODES:
            if episode.kind is Kind.HEARTBEAT and self._census.silent >= MAX_EPISODES:
                return  # one of very many that fell silent at once: they are counted, not listed
            self._drop(next(iter(self._episodes.values())))
        birth = self._births.pop(episode.key, None)
        is_lock = episode.kind in (Kind.LOCK, Kind.UNKNOWN)
        if birth is not None and is_lock and episode.opening is ChangeType.DELETED:
            episode.begin_with(birth)
        self._episodes[id(episode)] = episode
        self._latest[episode.key] = episode
        now = episode.last.change.observed_at
        self._inquiries.open(episode, now)
        for wait in LOOK_AGAIN:
            self._look_again(episode, now + wait)
        self._touch(episode, now)

    def _touch(self, episode: Episode, now: datetime) -> None:
        self._dirty = True
        self._judged.pop(id(episode), None)
        self._inquiries.again(episode, now)
        self._look_again(episode, now + SETTLED_AFTER)

    def _node_came_back(self, heartbeat: Episode, now: datetime) -> None:
        """Ask again about what ran there: it was restarted, or only cut off."""
        for number in self._about.get(heartbeat.key.name, ()):
            self._inquiries.look_again(self._episodes[number], now)

    def _look_again(self, episode: Episode, at: datetime) -> None:
        heapq.heappush(self._times, (at, next(self._serial), id(episode)))

    def _judge(self, episode: Episode, now: datetime) -> Judged:
        number = id(episode)
        judged = self._judged.get(number)
        if judged is None:
            scene = Scene(episode, self._known, now)
            gap = unwatched_time(episode, self._known)
            judged = Judged(
                episode,
                told(scene, judge(scene), gap),
                at=episode.at,
                lost_at=episode.lost_at,
                number=incident_id(self._cluster, episode.first),
                serial=next(self._serial),
                changed_at=episode.last.change.observed_at,
                node=scene.node,
                stopped_at=scene.stopped_at(),
                died=scene.died(),
                gap=gap,
            )
            self._judged[number] = judged
            names = self._names.setdefault(number, set())
            for name in scene.names() - names:
                names.add(name)
                self._about.setdefault(name, set()).add(number)
        return judged

    def _report(self, group: Group, now: datetime) -> list[Incident]:
        number = group.episodes[0].number
        reported_as = self._reported_as.get(number)
        if reported_as is not None and reported_as.still_holds(group, now):
            return []
        reported_as = ReportedAs.of(group, SETTLED_AFTER)
        settled = now >= reported_as.settles_at
        episodes = [one.episode for one in group.episodes]
        for one in episodes:
            self._incident_of[id(one)] = number
        self._spent[number] = sum(map(self._inquiries.asked, episodes))
        known = self._reported.get(number)
        sure = group.verdict.confidence is Confidence.CERTAIN
        begun = group.episodes[0].episode.first.change.observed_at
        if known is None and not (sure or settled) and now - begun < FIRST_REPORTED_AFTER:
            return []
        without = self._inquiries.without(episodes, group.verdict, now)
        incident = incident_of(
            self._cluster, number, group, without=without, settled=settled, now=now
        )
        self._reported[number], self._reported_as[number] = incident, reported_as
        if settled:
            self._settle(episodes, incident)
        return [] if incident == known else [incident]

    def _withdraw(self, numbers: set[str], groups: list[Group]) -> list[Incident]:
        """Withdraw incidents whose episodes belong to another one now."""
        gone = self._reported.keys() - numbers
        if not gone:
            return []
        heirs = {one.number: group.episodes[0].number for group in groups for one in group.episodes}
        news = []
        for number in gone:
            incident = self._reported.pop(number)
            self._reported_as.pop(number, None)
            self._spent.pop(number, None)
            if number in heirs:
                news.append(withdrawn(incident, heirs[number]))
            else:  # its changes made room for newer ones
                news.append(given_up(incident))
        return news

    def _settle(self, episodes: list[Episode], incident: Incident) -> None:
        """Forget the episodes; keep an incident that goes on until it ends."""
        for one in episodes:
            self._drop(one)
        self._reported.pop(incident.id, None)
        self._reported_as.pop(incident.id, None)
        self._spent.pop(incident.id, None)
        still_open = {one.key for one in episodes if one.ended_at is None}
        if still_open:
            self._going_on.keep(incident, still_open)

    def _drop(self, episode: Episode) -> None:
        number = id(episode)
        self._episodes.pop(number, None)
        self._judged.pop(number, None)
        self._incident_of.pop(number, None)
        self._inquiries.close(episode)
        if self._latest.get(episode.key) is episode:
            del self._latest[episode.key]
        for name in self._names.pop(number, ()):
            self._about[name].discard(number)
            if not self._about[name]:
                del self._about[name]
