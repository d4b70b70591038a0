"""What to ask a cluster about an episode, and how often: a few times, most telling first."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count

from leases.domain.cause.contender import contender
from leases.domain.cause.episode import Episode
from leases.domain.cause.facts import Question
from leases.domain.cause.incident import Cause, Confidence, Source
from leases.domain.cause.knowledge import Knowledge
from leases.domain.cause.scene import Scene, pod_keys
from leases.domain.cause.verdict import Verdict
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

# After the first look: a container restarts, a node is noticed to be dead, all is over.
ROUNDS = tuple(timedelta(seconds=seconds) for seconds in (0, 7, 33, 52, 100))
MAX_QUESTIONS = 50  # of one incident
WINDOW = timedelta(seconds=10)
MAX_IN_WINDOW = 50  # of all incidents
# Causes that Pods, Nodes and Events cannot make better.
_CLEAR = frozenset(
    {
        Cause.API_OUTAGE, Cause.API_SLOW, Cause.BY_HAND, Cause.CLOCK_SKEW, Cause.PREFERRED_HOLDER,
        Cause.DELETED,
    }
)  # fmt: skip


class Inquiries:
    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._due: list[tuple[datetime, int, Episode]] = []
        self._asked: dict[int, set[tuple[int, Question]]] = {}
        self._recent: deque[datetime] = deque()
        self._number = count()

    def open(self, episode: Episode, now: datetime) -> None:
        self._asked[id(episode)] = set()
        for wait in ROUNDS:
            self._push(episode, now + wait)

    def again(self, episode: Episode, now: datetime) -> None:
        """Something new is known: perhaps more can be asked."""
        if id(episode) in self._asked:
            self._push(episode, now)

    def close(self, episode: Episode) -> None:
        self._asked.pop(id(episode), None)

    def asked(self, episode: Episode) -> int:
        return len(self._asked.get(id(episode), ()))

    def next(self) -> datetime | None:
        return self._due[0][0] if self._due else None

    def questions(
        self,
        now: datetime,
        judge: Callable[[Episode], Verdict],
        incident_of: Callable[[Episode], str],
        spent: dict[str, int],
    ) -> list[Question]:
        """Return what to ask now. `spent`: the questions of each incident that was told."""
        while self._recent and now - self._recent[0] > WINDOW:
            self._recent.popleft()
        found: dict[Question, None] = {}
        left = MAX_IN_WINDOW - len(self._recent)
        done: set[int] = set()
        waiting: list[Episode] = []
        while self._due and self._due[0][0] <= now:
            episode = heapq.heappop(self._due)[2]
            asked = self._asked.get(id(episode))
            if asked is None or id(episode) in done:
                continue
            done.add(id(episode))
            incident = incident_of(episode)
            if spent.get(incident, 0) >= MAX_QUESTIONS or _enough(judge(episode)):
                continue
            if left - len(found) <= 0:
                waiting.append(episode)
                continue
            number = sum(1 for wait in ROUNDS if now - episode.at >= wait)
            for question in wanted(episode, self._known, now):
                if (number, question) not in asked and left - len(found) > 0:
                    asked.add((number, question))
                    found[question] = None
                    if incident in spent:
                        spent[incident] += 1
        for episode in waiting:
            self._push(episode, now + WINDOW)
        self._recent.extend(now for _ in found)
        return list(found)

    def _push(self, episode: Episode, at: datetime) -> None:
        heapq.heappush(self._due, (at, next(self._number), episode))


def _enough(verdict: Verdict) -> bool:
    return verdict.confidence is Confidence.CERTAIN or (
        verdict.cause in _CLEAR and verdict.confidence is Confidence.LIKELY
    )


def wanted(episode: Episode, known: Knowledge, now: datetime) -> Iterator[Question]:
    """Yield what is worth asking of sources that were not refused."""
    for question in _all(episode, known, now):
        if not known.refused(question.source, question.key.namespace, now):
            yield question


def _all(episode: Episode, known: Knowledge, now: datetime) -> Iterator[Question]:
    node = ObjectName("", episode.key.name)
    if episode.kind is Kind.HEARTBEAT:
        yield Question(Source.NODES, node)
        return
    scene = Scene(episode, known, now)
    loser, winner = episode.loser, episode.winner
    if loser is None:
        return
    found = next((one.key for one in scene.live), None)
    keys = [found] if found is not None else pod_keys(episode)
    for key in keys:
        readings = known.pods(key.name, key.namespace)
        if not readings or not readings[-1].gone:
            yield Question(Source.PODS, key)
    if scene.node:
        yield Question(Source.NODES, ObjectName("", scene.node))
    elif not loser.is_pod and not scene.pods:
        yield Question(Source.NODES, ObjectName("", loser.host))
    if found is not None or loser.is_pod:
        yield Question(Source.EVENTS, found or keys[0], "Pod")
    if winner is not None and not winner.template and scene.live:
        other = contender(winner.identity)
        if other is not None:
            yield Question(Source.PODS, ObjectName(scene.live[0].key.namespace, other.host))
    namespace = found.namespace if found is not None else episode.key.namespace
    for kind, name in scene.deployment:
        yield Question(Source.EVENTS, ObjectName(namespace, name), kind)
