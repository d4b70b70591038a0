"""Where holders run: what the cluster shows of their Pods and Nodes, read when a page asks.

A page asks for the holders that it shows, within a limit of time. One page asks at a time, at the
pace of `evidence`, and what it reads serves all pages for some seconds.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from leases.domain.cause.clue import Contender, contender
from leases.domain.cause.facts import (
    EventFact,
    Fact,
    Knowledge,
    NodeFact,
    PodFact,
    Question,
    RefusedSource,
)
from leases.domain.cause.scene import pod_keys_of
from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from leases.kube.evidence import EvidenceReader
from leases.wire.status import ApiError

FRESH = 5.0  # seconds for which an answer is not asked for again
MAX_READINGS = 4000


class Reading(msgspec.Struct, frozen=True):
    """What the cluster said to one question, and when; `error`: why it said nothing."""

    at: datetime
    facts: tuple[Fact, ...] = ()
    error: str = ""

    @property
    def refused(self) -> RefusedSource | None:
        """That the cluster forbids it, or does not serve it."""
        return next((one for one in self.facts if isinstance(one, RefusedSource)), None)

    @property
    def problem(self) -> str:
        """Why it was not read; "": it was."""
        return self.error or ("" if self.refused is None else self.refused.detail)


class HolderPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The Pod and the Node of a holder, and the Pod's newest Events, newest first.

    A Pod that is gone is the name that was looked for. None: not to be had, `unread` says why.
    """

    pod: PodFact | None = None
    node: NodeFact | None = None
    events: tuple[EventFact, ...] = ()
    events_at: datetime | None = None
    unread: tuple[tuple[Question, Reading | None], ...] = ()  # None: no answer in time


class HolderPods:
    """The Pods of the holders of one cluster. Any thread may read `known` and `reading`."""

    def __init__(self, reader: Callable[[], EvidenceReader], clock: Callable[[], datetime]) -> None:
        """`reader` raises ApiError while there is no connection."""
        self._reader = reader
        self._clock = clock
        self.known = Knowledge()
        self.version = 0  # grows when a Pod is found to run on another node than is known
        self.reads = 0  # answers so far
        self._readings: dict[Question, tuple[float, Reading]] = {}
        self._one_at_a_time = asyncio.Lock()

    def reading(self, question: Question) -> Reading | None:
        """The last answer to a question, however old."""
        found = self._readings.get(question)
        return None if found is None else found[1]

    def learn(self, facts: Iterable[Fact]) -> None:
        """Take facts, also those that somebody else asked for."""
        for fact in facts:
            if isinstance(fact, PodFact):
                before = self.known.pods(fact.key.name, fact.key.namespace)
                self.version += bool(fact.node and fact.node not in [one.node for one in before])
            self.known.learn([fact])

    async def ask(
        self, questions: Iterable[Question], *, within: float, fresh: float = FRESH
    ) -> dict[Question, Reading | None]:
        """Return the answers, read again where they are older than `fresh` seconds.

        After `within` seconds what is not read yet is None.
        """
        asked = list(dict.fromkeys(questions))
        since = _now() - fresh
        if self._stale(asked, since):
            try:
                reader = self._reader()
            except ApiError as error:
                for question in asked:
                    self._keep(question, Reading(self._clock(), error=str(error)))
                return {one: self.reading(one) for one in asked}
            with contextlib.suppress(TimeoutError):
                async with (
                    asyncio.timeout(within),
                    self._one_at_a_time,  # what another page has read meanwhile is fresh
                    asyncio.TaskGroup() as group,
                ):
                    for question in self._stale(asked, since):
                        group.create_task(self._read(reader, question))
        late = set(self._stale(asked, since))
        return {one: None if one in late else self.reading(one) for one in asked}

    def _stale(self, questions: Iterable[Question], since: float) -> list[Question]:
        never = (float("-inf"), None)
        return [one for one in questions if self._readings.get(one, never)[0] < since]

    async def _read(self, reader: EvidenceReader, question: Question) -> None:
        said = await reader.ask(question)
        now = self._clock()
        if isinstance(said, ApiError):
            reading = Reading(now, error=str(said))
        else:
            reading = Reading(now, tuple(said))
            self.learn(said)
        self._keep(question, reading)

    def _keep(self, question: Question, reading: Reading) -> None:
        self.reads += 1
        self._readings.pop(question, None)
        self._readings[question] = (_now(), reading)
        if len(self._readings) > MAX_READINGS:
            del self._readings[next(iter(self._readings))]

    async def place_of(
        self, lease: ObjectName, holder: str, *, is_node: bool, within: float
    ) -> HolderPlace:
        """Return where a holder runs, in so many seconds at most; a kubelet is its Node."""
        until = _now() + within
        questions = [] if is_node else pod_questions(lease, holder)
        pods = await self.ask(questions, within=within, fresh=FRESH)
        found = [one for one in map(_fact, pods.values()) if isinstance(one, PodFact)]
        pod = next((one for one in found if not one.gone), found[0] if found else None)
        name = _node_name(pod, contender(holder))
        node, events = Question(Source.NODES, ObjectName("", name)), None
        more = [node] if name else []
        if pod is not None:
            events = Question(Source.EVENTS, pod.key, "Pod")
            more.append(events)
        others = await self.ask(more, within=max(0.0, until - _now()), fresh=FRESH)
        told = None if events is None else others[events]
        ground = _fact(others.get(node))
        return HolderPlace(
            pod=pod,
            node=ground if isinstance(ground, NodeFact) and not ground.gone else None,
            events=_newest_first(told),
            events_at=None if told is None or _is_unread(told) else told.at,
            unread=tuple(one for one in (pods | others).items() if _is_unread(one[1])),
        )


def pod_questions(lease: ObjectName, holder: str) -> list[Question]:
    """What to ask to find the Pod of a holder."""
    who = contender(holder)
    return [] if who is None else [Question(Source.PODS, key) for key in pod_keys_of(lease, who)]


def _node_name(pod: PodFact | None, who: Contender | None) -> str:
    """The Node to ask for: that of the Pod, or one that the identity may name."""
    if pod is not None and not pod.gone:
        return pod.node
    return "" if who is None or who.is_pod else who.host


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_unread(reading: Reading | None) -> bool:
    return reading is None or bool(reading.problem)


def _fact(reading: Reading | None) -> Fact | None:
    return None if reading is None or not reading.facts else reading.facts[0]


def _newest_first(reading: Reading | None) -> tuple[EventFact, ...]:
    facts = () if reading is None else reading.facts
    found = [one for one in facts if isinstance(one, EventFact)]
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))
