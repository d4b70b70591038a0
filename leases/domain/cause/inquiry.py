"""What to ask a cluster about an episode, and how often: a few times, the most conclusive first."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count

from leases.domain.cause.clue import Episode
from leases.domain.cause.facts import Knowledge, Question
from leases.domain.cause.scene import Scene, Verdict, lived_at, pod_keys, set_neighbours
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Confidence, Source
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

# After the first look: a container restarts, a node is noticed to be dead, all is over.
ROUNDS = tuple(timedelta(seconds=seconds) for seconds in (0, 7, 33, 52, 100))
MAX_QUESTIONS = 50  # of one incident, about what is not judged for good
JUST_NOW = timedelta(seconds=5)
WINDOW = timedelta(seconds=10)
MAX_IN_WINDOW = 50  # of all incidents
ROOM = 1000  # entries before those of closed episodes are dropped
# Causes that Pods, Nodes and Events cannot make better.
_CLEAR = frozenset(
    {
        Cause.API_OUTAGE, Cause.BY_HAND, Cause.CLOCK_SKEW, Cause.PREFERRED_HOLDER, Cause.DELETED,
    }
)  # fmt: skip


class Inquiries:
    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._due: list[tuple[datetime, int, Episode]] = []
        self._asked: dict[int, set[tuple[int, Question]]] = {}
        self._possible: dict[int, tuple[Question, ...]] = {}  # until more is known
        self._count: dict[int, int] = {}
        self._since: dict[int, list[datetime]] = {}  # when its rounds began
        self._lately: dict[Question, datetime] = {}
        self._recent: deque[datetime] = deque()
        self._number = count()
        self._room = ROOM

    def open(self, episode: Episode, now: datetime) -> None:
        self._asked[id(episode)] = set()
        self._rounds(episode, now)

    def look_again(self, episode: Episode, now: datetime) -> None:
        """Begin anew: its node came back, and its Pod may be started again."""
        if id(episode) in self._asked:
            self._rounds(episode, now)

    def _rounds(self, episode: Episode, now: datetime) -> None:
        self._since.setdefault(id(episode), []).append(now)
        for wait in ROUNDS:
            self._push(episode, now + wait)

    def again(self, episode: Episode, now: datetime) -> None:
        """Something new is known: perhaps more can be asked."""
        self._possible.pop(id(episode), None)
        if id(episode) in self._asked:
            self._push(episode, now)

    def close(self, episode: Episode) -> None:
        """Ask no more about it. It leaves room for questions about later losses of its incident."""
        self._count.pop(id(episode), None)
        self._asked.pop(id(episode), None)
        self._possible.pop(id(episode), None)
        self._since.pop(id(episode), None)
        if len(self._due) > self._room:  # those that wait for their turn hold what is over
            self._due = [one for one in self._due if id(one[2]) in self._asked]
            heapq.heapify(self._due)
            self._room = 2 * len(self._due) + ROOM

    def asked(self, episode: Episode) -> int:
        return self._count.get(id(episode), 0)

    def next(self) -> datetime | None:
        return self._due[0][0] if self._due else None

    def questions(
        self,
        now: datetime,
        judge: Callable[[Episode], Verdict],
        incident_of: Callable[[Episode], str],
        spent: dict[str, int],
    ) -> list[Question]:
        """Return what to ask now. `spent`: the questions of each incident that was reported."""
        while self._recent and now - self._recent[0] > WINDOW:
            self._recent.popleft()
        found: dict[Question, None] = {}
        left = MAX_IN_WINDOW - len(self._recent)
        done: set[int] = set()
        while self._due and self._due[0][0] <= now and len(found) < left:
            episode = heapq.heappop(self._due)[2]
            if id(episode) not in self._asked or id(episode) in done:
                continue
            done.add(id(episode))
            incident = incident_of(episode)
            if spent.get(incident, 0) >= MAX_QUESTIONS or _enough(judge(episode)):
                continue
            new = self._unasked(episode, now, left - len(found))
            found |= dict.fromkeys(new)
            self._count[id(episode)] = self.asked(episode) + len(new)
            if incident in spent:
                spent[incident] += len(new)
        self._recent.extend(now for _ in found)
        return list(found)

    def _unasked(self, episode: Episode, now: datetime, most: int) -> list[Question]:
        """Return what was not asked in this round."""
        asked, begun = self._asked[id(episode)], self._since[id(episode)]
        number = sum(1 for since in begun for wait in ROUNDS if now - since >= wait)
        new: list[Question] = []
        for question in self._all(episode, now):
            if self._known.refused(question.source, question.key.namespace, now):
                continue
            if len(new) < most and (number, question) not in asked:
                asked.add((number, question))
                new += [question] if self._is_new(question, now) else []
        return new

    def _is_new(self, question: Question, now: datetime) -> bool:
        """Whether nobody asked the same just now: one answer serves several episodes."""
        while self._lately and now - next(iter(self._lately.values())) > JUST_NOW:
            del self._lately[next(iter(self._lately))]
        if question in self._lately:
            return False
        self._lately[question] = now
        return True

    def without(
        self, episodes: list[Episode], verdict: Verdict, now: datetime
    ) -> tuple[Source, ...]:
        """Return the sources that could have explained more, but were refused lately."""
        if _enough(verdict):
            return ()
        refused = {
            question.source
            for one in [one for one in episodes if not one.rests][:MAX_QUESTIONS]
            for question in self._all(one, now)
            if self._known.refused(question.source, question.key.namespace, now)
        }
        return tuple(source for source in Source if source in refused)

    def _all(self, episode: Episode, now: datetime) -> tuple[Question, ...]:
        """Return what could explain more of it, refused or not."""
        found = self._possible.get(id(episode))
        if found is None:
            found = tuple(_all(episode, self._known, now))
            self._possible[id(episode)] = found
        return found

    def _push(self, episode: Episode, at: datetime) -> None:
        heapq.heappush(self._due, (at, next(self._number), episode))


def _enough(verdict: Verdict) -> bool:
    return verdict.confidence is Confidence.CERTAIN or (
        verdict.cause in _CLEAR and verdict.confidence is Confidence.LIKELY
    )


def _all(episode: Episode, known: Knowledge, now: datetime) -> Iterator[Question]:
    node = ObjectName("", episode.key.name)
    if episode.kind is Kind.HEARTBEAT:
        yield Question(Source.NODES, node)
        if not episode.open:  # it came back
            yield Question(Source.EVENTS, node, "Node")
        return
    scene = Scene(episode, known, now)
    loser, winner = episode.loser, episode.winner
    if loser is None:
        return
    found = next((one.key for one in scene.live), None)
    keys = [found] if found is not None else pod_keys(episode)
    for key in keys:
        readings = known.pods(key.name, key.namespace)
        comes_back = not loser.is_pod  # a StatefulSet makes a Pod of the same name
        gone = readings and readings[-1].gone and readings[-1].read_at > lived_at(episode)
        if comes_back or not gone:
            yield Question(Source.PODS, key)
    if scene.node:
        yield Question(Source.NODES, ObjectName("", scene.node))
    elif not loser.is_pod and not scene.pods:
        yield Question(Source.NODES, ObjectName("", loser.host))
    yield Question(Source.EVENTS, found or keys[0], "Pod")
    if winner is not None and winner.host == loser.host:
        yield from _of_its_set(scene)
    other = "" if winner is None or winner.host == loser.host else winner.host
    if (
        other
        and winner
        and not winner.template
        and found
        and not known.pods(other, found.namespace)
    ):
        yield Question(Source.PODS, ObjectName(found.namespace, other))
    if episode.opening is not ChangeType.RELEASED and not scene.stopped():
        return
    namespace = found.namespace if found is not None else episode.key.namespace
    for kind, name in scene.deployment:
        yield Question(Source.EVENTS, ObjectName(namespace, name), kind)


def _of_its_set(scene: Scene) -> Iterator[Question]:
    """A rollout makes the other Pods of a set anew, too; a revision would say so by itself."""
    if not any(one.revision for one in scene.live):
        for key in set_neighbours(scene):
            yield Question(Source.PODS, key)
