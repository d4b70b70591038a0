"""The open incidents of one cluster: clues and facts go in, incidents come out.

Stateful, but without clock and IO: the caller passes `now` and looks up the questions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from types import MappingProxyType

from msgspec.structs import replace

from leases.domain.cause.clue import Clue, Episode, opens
from leases.domain.cause.facts import Break, Fact, Knowledge, Question
from leases.domain.cause.flapping import flapped_before, taken_over, thinned_out
from leases.domain.cause.going_on import ENDS, SETTLED_AFTER, GoingOn, Wait, as_of, is_news, waiting
from leases.domain.cause.groups import (
    ReportedAs,
    given_up,
    grouped,
    incident_id,
    incident_of,
    with_the_crowd,
    withdrawn,
)
from leases.domain.cause.inquiry import Inquiries
from leases.domain.cause.judge import judge
from leases.domain.cause.node_groups import Crowd
from leases.domain.cause.scene import Group, Judged, Scene, Verdict
from leases.domain.cause.unwatched import nobody_took_it, told, told_alone, unwatched_time
from leases.domain.cause.usual_writers import UsualWriters, remember
from leases.domain.change import Change, ChangeType
from leases.domain.figures import Span
from leases.domain.incident import Cause, Confidence, Incident, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, MissedTime

# Incidents that are not certain are reported after this time: what belongs together comes soon.
FIRST_REPORTED_AFTER = timedelta(seconds=2)
BETWEEN_REVIEWS = timedelta(seconds=1)
# When the time that passed may change a verdict: see the rules of handover and writes.
LOOK_AGAIN = tuple(timedelta(seconds=seconds) for seconds in (2, 26, 31))
EPISODES_A_SECOND = 300
MAX_EPISODES = 5000
_LOCKS = frozenset(Kind) - {Kind.HEARTBEAT, Kind.IDENTITY}  # or may turn out to be one
NOTHING_LOST: Mapping[str, Sequence[Clue]] = MappingProxyType({})
FEW_EPISODES = 20  # judged within a millisecond
MAX_LISTED = 4000  # heartbeats that ran out; the others that do are counted


def _is_lost_heartbeat(episode: Episode) -> bool:
    return episode.kind is Kind.HEARTBEAT and episode.opening is ChangeType.EXPIRED


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
        self._going_on = GoingOn(self._known)
        self._times: list[tuple[datetime, int, int]] = []
        self._serial = count()
        self._crowd = Crowd()
        self._crowd_is_new = False
        self._dirty = False
        self._reviewed_at: datetime | None = None
        self._writers = UsualWriters()
        self._births: dict[ObjectName, Clue] = {}

    def note(self, clue: Clue) -> None:
        """Add one change."""
        clue = self._writers.note(clue)
        change, key = clue.change, clue.key
        episode = self._latest.get(key)
        if episode is not None and episode.cut_at is not None and change.change in ENDS:
            episode.end = clue
            del self._latest[key]
            self._touch(episode, change.observed_at)
            self._divide(episode)
            return
        if episode is not None and episode.takes(clue):
            episode.add(clue)
            self._touch(episode, change.observed_at)
            self._divide(episode)
            if episode.kind is Kind.HEARTBEAT and not episode.open:
                self._node_came_back(episode, change.observed_at)
            return
        if self._crowd.takes(clue, self._known.breaks) or self._going_on.takes(clue):
            self._dirty = self._crowd_is_new = True
            self._divide_what_goes_on()
            return
        if self._crowd.begins(clue, MAX_LISTED):
            self._crowd.add(clue)
            self._dirty = self._crowd_is_new = True
        elif opens(clue):
            self._open(Episode(clue))
        elif change.change is ChangeType.CREATED and not change.inferred and change.kind in _LOCKS:
            # Kept for long: what others did then is no part of its story.
            remember(self._births, key, replace(clue, silences=(), late_around=()))

    def _divide(self, episode: Episode) -> None:
        """Let an outage of the API in which nobody could take a Lease that was lost before end the
        story of its loss: whoever takes it at once then belongs to the outage.
        """
        if episode.rests or episode.opening is ChangeType.DELETED:
            return
        last = episode.all_clues[-1]
        outage = self._going_on.waited_out(episode.at, last)
        if outage is not None and unwatched_time(episode, self._known) is not outage:
            episode.cut_off(outage.since)
            self._touch(episode, last.change.observed_at)
            newest = self._latest.get(episode.key, episode)
            self._open(Episode(last, outage))
            if newest is not episode:
                self._latest[episode.key] = newest

    def watch(self, connection: Connection, now: datetime) -> None:
        """Our own watch broke, or lives again."""
        found = self._known.watch(connection, now)
        if found is not None:
            self._judge_again(found)

    def count(self, heartbeats: int) -> None:
        """Note how many heartbeats the cluster has."""
        self._crowd.heartbeats = heartbeats

    def missed(self, missed: MissedTime) -> None:
        """Nobody watched in that time, or more is known of it now."""
        found = self._known.missed(missed)
        if found.hosted:
            self._end_before(found.since)
        if found.of_all:
            for episode in tuple(self._episodes.values()):
                self._divide(episode)
            self._divide_what_goes_on()
        self._judge_again(found)

    def _divide_what_goes_on(self) -> None:
        for clue, outage in self._going_on.divide():
            self._open(Episode(clue, outage))

    def _end_before(self, at: datetime) -> None:
        """What comes after the Lease API stood still does not tell why a Lease was lost before."""
        self._going_on.cut(at)
        for episode in self._latest.values():
            if episode.open and episode.last.change.at <= at:
                episode.cut_at = episode.cut_at or at

    def _judge_again(self, found: Break) -> None:
        """Forget the judgements that a time without a watch may change."""
        # What was over before it is judged without it.
        later = [
            number
            for number, one in self._judged.items()
            if one.at >= found.since and not one.episode.rests
        ]
        for number in later:
            del self._judged[number]
        self._reported_as.clear()  # what flaps settles later
        self._dirty = self._dirty or bool(self._episodes)

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
        if self._crowd_is_new:
            self._crowd_is_new = False
            heapq.heappush(self._times, (now + SETTLED_AFTER, next(self._serial), 0))
        groups = grouped(judged, self._known.breaks, self._crowd, now)
        for one in judged:
            if one.episode.stays_away and not (one.stays_away or one.episode.rests):
                self._touch(one.episode, now)  # what else may tell why
        crowded, crowd = with_the_crowd(groups, self._crowd), self._crowd
        news = [
            one
            for group in groups
            for one in self._report(group, crowd if group is crowded else None, now)
        ]
        for episode in [one for group in groups for one in taken_over(group)]:
            self._drop(episode)
        news += self._withdraw({group.episodes[0].number for group in groups}, groups)
        return news + self._going_on.review(now)

    @property
    def is_small(self) -> bool:
        """Whether a review takes no longer than a moment."""
        return len(self._episodes) <= FEW_EPISODES

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

    def next_look(self, now: datetime) -> datetime | None:
        """Return when to review or to ask next; None: not before the next clue or fact."""
        due, asks = self.next_review(now), self._inquiries.next()
        return due if due is None or asks is None else min(due, asks)

    def restore(
        self,
        incidents: Iterable[Incident],
        stopped_at: datetime | None = None,
        blind: Sequence[Span] = (),
        losses: Mapping[str, Sequence[Clue]] = NOTHING_LOST,
        wait_of: Callable[[ObjectName], Wait | None] = lambda _: None,
    ) -> None:
        """Go on with the incidents that were open at the last stop.

        `blind`: the times before it that nobody watched. `losses`: the changes of those that flap,
        by their ids, oldest first; another loss of their Leases belongs to them. `wait_of`: since
        when a Lease has no holder.
        """
        self._known.recall(blind)
        others = [one for one in incidents if not self._flaps_on(one, losses.get(one.id, ()))]
        self._going_on.restore(others, stopped_at, wait_of)
        if stopped_at is not None:
            self._known.stopped(stopped_at)
            if self._hosted:
                self._going_on.cut(stopped_at)

    def _flaps_on(self, incident: Incident, clues: Iterable[Clue]) -> bool:
        """Take up the losses of a Lease that flapped, if history has them from the first one on."""
        episodes = list(flapped_before(clues))
        if not episodes or incident_id(self._cluster, episodes[0].first) != incident.id:
            return False
        # Its sentence counts the losses: it stands for evidence where nothing else was seen.
        seen = tuple(one for one in incident.evidence if one.sentence != incident.sentence)
        for one in episodes:
            is_first = one is episodes[0]
            verdict = Verdict(
                Cause.UNKNOWN, incident.confidence, incident.sentence, seen if is_first else ()
            )
            self._episodes[id(one)] = one
            self._judged[id(one)] = self._judgement(one, verdict)
            if one.open:
                self._latest[one.key] = one
            else:
                one.rest()
        self._reported[incident.id] = incident
        self._dirty = True
        return True

    def losses(self) -> dict[str, list[Clue]]:
        """Return the changes of the incidents that flap, by their ids, oldest first: also those
        that no review has seen.
        """
        flapping = [one for one in self._reported.values() if one.cause is Cause.FLAPPING]
        found: dict[str, list[Clue]] = {one.id: [] for one in flapping}
        by_key = {key: one for one in flapping for key in one.leases}
        for episode in self._episodes.values():
            incident = by_key.get(episode.key)
            if incident is not None and episode.at >= incident.began:
                found[incident.id] += episode.all_clues
        return found

    @property
    def breaks(self) -> list[Break]:
        """The times that nobody watched, oldest first."""
        return list(self._known.breaks)

    def remember(self, earlier: Casebook) -> None:
        """Know what an earlier casebook knew of times that nobody watched, and of writers."""
        self._known.breaks.extend(earlier.breaks)
        self._writers = earlier._writers

    def recall(self, changes: Iterable[Change]) -> None:
        """Know what persons wrote before the last stop; oldest first."""
        for change in changes:
            self._writers.recall(change)

    def going_on(self) -> list[Incident]:
        """Return the incidents that have not ended."""
        reported = [one for one in self._reported.values() if one.ended is None and one.members]
        return reported + self._going_on.incidents()

    def _open(self, episode: Episode) -> None:
        if len(self._episodes) >= MAX_EPISODES:
            self._drop(next(iter(self._episodes.values())))
        birth = self._births.pop(episode.key, None)
        is_lock = episode.kind in (Kind.LOCK, Kind.UNKNOWN)
        if birth is not None and is_lock and episode.opening is ChangeType.DELETED:
            episode.begin_with(birth)
        self._episodes[id(episode)] = episode
        self._crowd.listed += _is_lost_heartbeat(episode)
        lost = self._latest.get(episode.key)
        if lost is not None:
            episode.key = lost.key  # one object for all losses of a Lease
        if lost is None or not lost.open or not episode.only_edits:
            self._latest[episode.key] = episode  # else the one that lost it waits for its end
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
            over = (episode.is_cut_off or episode.end is not None) and episode.cut_at
            scene = Scene(episode, self._known, over or now)
            gap = episode.waited_out or unwatched_time(episode, self._known)
            verdict = told(scene, judge(scene), gap)
            if episode.is_cut_off and over:
                verdict = replace(verdict, sentence=nobody_took_it(verdict.sentence, over))
            if episode.stays_away and gap is not None:
                scene = Scene(episode, self._known, over or now, gap.until)
                verdict = told_alone(scene, judge(scene, alone=True), gap)
            judged = replace(
                self._judgement(episode, verdict),
                stays_away=episode.stays_away,
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

    def _judgement(self, episode: Episode, verdict: Verdict) -> Judged:
        return Judged(
            episode,
            verdict,
            at=episode.at,
            lost_at=episode.lost_at,
            number=incident_id(self._cluster, episode.first),
            serial=next(self._serial),
            changed_at=episode.all_clues[-1].change.observed_at,
        )

    def _report(self, group: Group, crowd: Crowd | None, now: datetime) -> list[Incident]:
        number = group.episodes[0].number
        reported_as = self._reported_as.get(number)
        if reported_as is not None and reported_as.still_holds(group, crowd, now):
            return []
        blind = self._known.blind(now)
        reported_as = ReportedAs.of(group, crowd, SETTLED_AFTER, blind)
        settled = now >= reported_as.settles_at
        episodes = [one.episode for one in group.episodes]
        for one in episodes:
            if not one.rests:
                self._incident_of[id(one)] = number
        self._spent[number] = sum(map(self._inquiries.asked, episodes))
        self._let_rest(group, now)
        known = self._reported.get(number)
        # The Leases of an outage are heard of one after the other.
        verdict = group.verdict
        sure = verdict.confidence is Confidence.CERTAIN and verdict.cause is not Cause.API_OUTAGE
        begun = group.episodes[0].episode.first.change.observed_at
        if known is None and not (sure or settled) and now - begun < FIRST_REPORTED_AFTER:
            return []
        without = self._inquiries.without(episodes, group.verdict, now)
        incident = incident_of(
            self._cluster, number, group, crowd, without=without, settled=settled, now=now,
            breaks=self._known.breaks,
        )  # fmt: skip
        incident, at = as_of(incident, now, blind)
        if at is not None and not self._known.is_broken:  # else its end says when
            heapq.heappush(self._times, (at, next(self._serial), 0))
            reported_as = replace(reported_as, graver_at=at)
        if incident.cause is Cause.FLAPPING and not settled:
            heapq.heappush(self._times, (reported_as.settles_at, next(self._serial), 0))
        news = known is None or is_news(incident, known)
        self._reported_as[number] = reported_as
        self._reported[number] = incident if known is None or news else known
        if settled:
            if crowd is not None:
                self._crowd = Crowd(crowd.heartbeats)
                self._crowd.listed = crowd.listed
            self._settle(episodes, incident, max(crowd.unheld(), default=None) if crowd else None)
        if not news:
            return []
        if incident.standing is Standing.PLANNED and not settled:
            for one, wait in waiting(episodes):
                self._look_again(one, wait.overruns_at(now, blind))
        return [incident]

    def _let_rest(self, group: Group, now: datetime) -> None:
        """Judge losses for good that were over long ago in an incident that goes on, as flapping.

        Of many losses of one Lease, those in between keep no evidence.
        """
        for one in group.episodes:
            episode, number = one.episode, id(one.episode)
            if episode.rests or episode.open or self._latest.get(episode.key) is episode:
                continue
            if now - episode.all_clues[-1].change.observed_at < SETTLED_AFTER:
                continue
            episode.rest()
            self._incident_of.pop(number, None)
            self._inquiries.close(episode)
            self._forget_names(number)
        self._judged |= {id(one.episode): one for one in thinned_out(group)}

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

    def _settle(
        self, episodes: list[Episode], incident: Incident, crowd_since: datetime | None
    ) -> None:
        """Forget the episodes; keep an incident that goes on until it ends."""
        for one in episodes:
            self._drop(one)
        self._reported.pop(incident.id, None)
        self._reported_as.pop(incident.id, None)
        self._spent.pop(incident.id, None)
        still_open = {one.key: one.unheld_since for one in episodes if one.ended_at is None}
        if still_open or (incident.unlisted is not None and incident.unlisted.without):
            waits = [wait for _, wait in waiting(episodes)]
            self._going_on.keep(incident, still_open, waits, crowd_since)

    def _drop(self, episode: Episode) -> None:
        number = id(episode)
        if self._episodes.pop(number, None) is not None:
            self._crowd.listed -= _is_lost_heartbeat(episode)
        self._judged.pop(number, None)
        self._incident_of.pop(number, None)
        self._inquiries.close(episode)
        if self._latest.get(episode.key) is episode:
            del self._latest[episode.key]
        self._forget_names(number)

    def _forget_names(self, number: int) -> None:
        for name in self._names.pop(number, ()):
            self._about[name].discard(number)
            if not self._about[name]:
                del self._about[name]
