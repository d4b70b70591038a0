"""The open incidents of one cluster: clues and facts go in, incidents come out.

Stateful, but without clock and IO: the caller passes `now` and looks up the questions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

import msgspec

from leases.domain.cause.clue import Clue, LateRenewal
from leases.domain.cause.episode import Episode, opens
from leases.domain.cause.facts import Fact, Question
from leases.domain.cause.going_on import GoingOn
from leases.domain.cause.groups.grouped import grouped
from leases.domain.cause.groups.judged import Group, Judged
from leases.domain.cause.hands import foreign_writer, is_hand
from leases.domain.cause.incident import Confidence, Incident
from leases.domain.cause.inquiry import Inquiries
from leases.domain.cause.knowledge import Knowledge
from leases.domain.cause.rules.judge import judge
from leases.domain.cause.scene import Scene
from leases.domain.cause.telling import incident_id, incident_of, withdrawn
from leases.domain.changes.change import ChangeType
from leases.domain.connection import Connection
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

V = TypeVar("V")

_replace = msgspec.structs.replace

SETTLED_AFTER = timedelta(seconds=120)
# Incidents that are not certain are first told after this time: what belongs together comes soon.
FIRST_TOLD_AFTER = timedelta(seconds=2)
BETWEEN_REVIEWS = timedelta(seconds=1)
# When the time that passed may change a verdict: see the rules of handover and writes.
LOOK_AGAIN = tuple(timedelta(seconds=seconds) for seconds in (2, 26, 31))
MAX_EPISODES = 5000
MAX_REMEMBERED = 20_000  # writers, and Leases that were just created


class Casebook:
    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._known = Knowledge()
        self._inquiries = Inquiries(self._known)
        self._episodes: dict[int, Episode] = {}
        self._latest: dict[ObjectName, Episode] = {}
        self._judged: dict[int, Judged] = {}  # what need not be judged again
        self._about: dict[str, set[int]] = {}  # name of an object -> episodes that it concerns
        self._names: dict[int, set[str]] = {}  # the other way round
        self._incident_of: dict[int, str] = {}
        self._spent: dict[str, int] = {}  # questions asked for each incident
        self._told: dict[str, Incident] = {}
        self._going_on = GoingOn()
        self._times: list[tuple[datetime, int, int]] = []
        self._number = count()
        self._dirty = False
        self._reviewed_at: datetime | None = None
        self._writers: dict[ObjectName, str] = {}
        self._births: dict[ObjectName, Clue] = {}

    def note(self, clue: Clue) -> None:
        """Add one change."""
        clue = self._with_usual_writer(clue)
        change, key = clue.change, clue.key
        episode = self._latest.get(key)
        if episode is not None and episode.takes(clue):
            episode.add(clue)
            self._touch(episode, change.observed_at)
            return
        if self._going_on.takes(clue):
            self._dirty = True
            return
        if opens(clue):
            self._open(Episode(clue))
        elif change.change is ChangeType.CREATED and not change.inferred:
            _remember(self._births, key, clue)

    def late(self, renewal: LateRenewal) -> None:
        """Add a renewal that nearly came too late. Clues carry them, so nothing is kept here."""

    def watch(self, connection: Connection, now: datetime) -> None:
        """Our own watch broke, or lives again."""
        self._known.watch(connection, now)
        self._judged.clear()
        self._dirty = self._dirty or bool(self._episodes)

    def learn(self, facts: Iterable[Fact]) -> None:
        """Add what the cluster answered."""
        for name in self._known.learn(facts):
            for number in self._about.get(name, ()):
                episode = self._episodes.get(number)
                if episode is not None:
                    self._judged.pop(number, None)
                    self._dirty = True
                    self._inquiries.again(episode, self._reviewed_at or episode.at)

    def questions(self, now: datetime) -> list[Question]:
        """Return what to look up now, most telling first."""
        due = self._inquiries.next()
        if due is None or due > now:
            return []
        return self._inquiries.questions(
            now, lambda one: self._judge(one, now).verdict, self._spent_for
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
            self._judged.pop(heapq.heappop(self._times)[2], None)
        groups = grouped([self._judge(one, now) for one in self._episodes.values()])
        news = [one for group in groups for one in self._tell(group, now)]
        news += self._withdraw({self._id(group) for group in groups})
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
        return due if self._reviewed_at is None else max(due, self._reviewed_at + BETWEEN_REVIEWS)

    def restore(self, incidents: Iterable[Incident]) -> None:
        """Go on with the incidents that were open at the last stop."""
        self._going_on.restore(incidents)

    def going_on(self) -> list[Incident]:
        """Return the incidents that have not ended."""
        told = [one for one in self._told.values() if one.ended is None and one.members]
        return told + self._going_on.incidents()

    def _open(self, episode: Episode) -> None:
        if len(self._episodes) >= MAX_EPISODES:
            self._drop(next(iter(self._episodes.values())))
        birth = self._births.pop(episode.key, None)
        if birth is not None and episode.opening is ChangeType.DELETED and _of_a_lock(episode):
            episode.clues.insert(0, birth)
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

    def _look_again(self, episode: Episode, at: datetime) -> None:
        heapq.heappush(self._times, (at, next(self._number), id(episode)))

    def _judge(self, episode: Episode, now: datetime) -> Judged:
        number = id(episode)
        judged = self._judged.get(number)
        if judged is None:
            scene = Scene(episode, self._known, now)
            judged = Judged(episode, judge(scene), scene.node, cordoned=scene.cordoned())
            self._judged[number] = judged
            names = self._names.setdefault(number, set())
            for name in scene.names() - names:
                names.add(name)
                self._about.setdefault(name, set()).add(number)
        return judged

    def _id(self, group: Group) -> str:
        return incident_id(self._cluster, group.episodes[0].episode.first)

    def _tell(self, group: Group, now: datetime) -> list[Incident]:
        episodes = [one.episode for one in group.episodes]
        number = self._id(group)
        changed_at = max(one.last.change.observed_at for one in episodes)
        settled = now - changed_at >= SETTLED_AFTER
        for one in episodes:
            self._incident_of[id(one)] = number
        self._spent[number] = sum(self._inquiries.asked(one) for one in episodes)
        known = self._told.get(number)
        sure = group.verdict.confidence is Confidence.CERTAIN
        begun = min(one.first.change.observed_at for one in episodes)
        if known is None and not (sure or settled) and now - begun < FIRST_TOLD_AFTER:
            return []
        asked = self._spent[number] > 0
        without = tuple(self._known.refusals) if asked else ()
        incident = incident_of(self._cluster, number, group, without=without, settled=settled)
        self._told[number] = incident
        if settled:
            self._settle(episodes, incident)
        return [] if incident == known else [incident]

    def _withdraw(self, groups: set[str]) -> list[Incident]:
        """Take back what was told of episodes that belong to another incident now."""
        gone = {number for number in self._told if number not in groups}
        if not gone:
            return []
        heirs = {
            incident_id(self._cluster, one.first): self._incident_of.get(id(one))
            for one in self._episodes.values()
        }
        news = []
        for number in gone:
            incident = self._told.pop(number)
            self._spent.pop(number, None)
            heir = heirs.get(number)
            if heir is not None:
                news.append(withdrawn(incident, heir))
        return news

    def _settle(self, episodes: list[Episode], incident: Incident) -> None:
        """Forget the episodes; keep an incident that goes on until it ends."""
        for one in episodes:
            self._drop(one)
        self._told.pop(incident.id, None)
        self._spent.pop(incident.id, None)
        still_open = {one.key for one in episodes if one.open}
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

    def _spent_for(self, episode: Episode) -> int:
        number = self._incident_of.get(id(episode))
        return self._spent.get(number, 0) if number is not None else 0

    def _with_usual_writer(self, clue: Clue) -> Clue:
        """Add who writes this Lease usually, and remember it."""
        change, key = clue.change, clue.key
        usual = self._writers.get(key)
        if usual is not None:
            clue = _replace(clue, usual_writer=usual)
        writer = change.writer
        if writer is not None and change.change is not ChangeType.RECONFIGURED:
            created = change.change is ChangeType.CREATED
            own = not is_hand(writer) if created else foreign_writer(clue) is None
            if own and (created or not is_hand(writer)) and change.kind is not Kind.HEARTBEAT:
                _remember(self._writers, key, writer)
        return clue


def _remember(known: dict[ObjectName, V], key: ObjectName, value: V) -> None:
    known.pop(key, None)
    if len(known) >= MAX_REMEMBERED:
        del known[next(iter(known))]
    known[key] = value


def _of_a_lock(episode: Episode) -> bool:
    return episode.kind in (Kind.LOCK, Kind.UNKNOWN)
