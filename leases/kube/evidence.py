"""Answer questions about Pods, Nodes and Events with facts, where the cluster lets us."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime

from leases.domain.cause.facts import (
    ASK_REFUSED_AGAIN,
    EventFact,
    Fact,
    NodeFact,
    PodFact,
    Question,
    RefusedSource,
)
from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from leases.kube import kube_objects
from leases.kube.lease_client import LeaseClient
from leases.wire.status import ApiError, Forbidden, NotFound, Status, TooManyRequests

AT_ONCE = 5
PER_SECOND = 20


class RequestPace:
    """Lets AT_ONCE requests run at a time, and PER_SECOND of them start in any second."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)
        self._free_at = 0.0  # by the event loop's clock: when the next request may start
        self._held_until = 0.0

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a place and for the moment to start; leave it after the answer."""
        async with self._places:
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(self.next_start(now) - now)
            yield

    def next_start(self, now: float) -> float:
        """Reserve the moment at which one more request may start."""
        start = max(now, self._free_at, self._held_until)
        self._free_at = start + 1 / PER_SECOND
        return start

    def hold(self, seconds: float) -> None:
        """Start nothing for so long: the server is overloaded."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + seconds)

    def held_for(self) -> float:
        """Return how many seconds the server still wants to be left alone."""
        return max(0.0, self._held_until - asyncio.get_running_loop().time())


REVISION_LABELS = ("controller-revision-hash", "pod-template-hash")
MAX_TEXT = 1024  # characters of a text that is kept with an incident; an Event's message has these
_NEVER = datetime.min.replace(tzinfo=UTC)


def pod_fact(pod: kube_objects.Pod, key: ObjectName, read_at: datetime) -> PodFact:
    """Say what the Pod of this name was at `read_at`."""
    meta, containers = pod.metadata, pod.status.container_statuses or ()
    labels = meta.labels or {}
    owner = next((one for one in meta.owner_references or () if one.controller), None)
    last = max(_ends(containers), key=lambda one: one[1].finished_at or _NEVER, default=None)
    container, ended = last or (None, None)
    ready = pod.ready
    return PodFact(
        key=key,
        read_at=read_at,
        uid=meta.uid,
        node=_clip(pod.spec.node_name),
        phase=_clip(pod.status.phase),
        reason=_clip(pod.status.reason),
        owner_kind="" if owner is None else _clip(owner.kind),
        owner_name="" if owner is None else _clip(owner.name),
        revision=_clip(next((labels[name] for name in REVISION_LABELS if name in labels), "")),
        created_at=meta.creation_timestamp,
        deleted_at=meta.deletion_timestamp,
        restarts=sum(one.restart_count for one in containers),
        exit_reason="" if ended is None else _clip(ended.reason),
        exit_code=None if ended is None else ended.exit_code,
        exited_at=None if ended is None else ended.finished_at,
        ran_from=None if ended is None else ended.started_at,
        started_at=max(_starts(containers), default=None),
        waiting=_waits(containers),
        ready="" if ready is None else _clip(ready.status),
        ready_since=None if ready is None else ready.last_transition_time,
        disrupted=_disruption(pod),
        container=_clip(container.name if container is not None else pod.usual_container),
        ran_before=container is not None and container.has_ended_before,
    )


def node_fact(node: kube_objects.NodeObject, name: str, read_at: datetime) -> NodeFact:
    """Say what the Node of this name was at `read_at`."""
    ready = node.ready
    return NodeFact(
        name=name,
        read_at=read_at,
        ready="" if ready is None else _clip(ready.status),
        ready_since=None if ready is None else ready.last_transition_time,
        ready_reason="" if ready is None else _clip(ready.reason),
        cordoned=node.spec.unschedulable,
    )


def event_fact(event: kube_objects.KubeEvent, kind: str, key: ObjectName) -> EventFact | None:
    """Say what the Event about this object tells; None if it has no time."""
    if event.at is None:
        return None
    return EventFact(
        kind=kind,
        key=key,
        reason=_clip(event.reason),
        message=_clip(event.message),
        at=event.at,
        component=_clip(event.component),
        host=_clip(event.host),
        times=event.times,
    )


def _ends(
    containers: tuple[kube_objects.ContainerStatus, ...],
) -> Iterator[tuple[kube_objects.ContainerStatus, kube_objects.Terminated]]:
    for one in containers:
        for state in (one.state, one.last_state):
            if state is not None and state.terminated is not None:
                yield one, state.terminated


def _starts(containers: tuple[kube_objects.ContainerStatus, ...]) -> Iterator[datetime]:
    for one in containers:
        running = None if one.state is None else one.state.running
        if running is not None and running.started_at is not None:
            yield running.started_at


def _waits(containers: tuple[kube_objects.ContainerStatus, ...]) -> str:
    states = (one.state for one in containers if one.state is not None)
    return next((_clip(one.waiting.reason) for one in states if one.waiting is not None), "")


def _disruption(pod: kube_objects.Pod) -> str:
    conditions = pod.status.conditions or ()
    found = (c for c in conditions if c.type == "DisruptionTarget" and c.status == "True")
    return next((_clip(one.reason) for one in found), "")


def _clip(text: str) -> str:
    return text[:MAX_TEXT]


logger = logging.getLogger(__name__)

WITHIN = 5.0  # seconds for each request
ANSWER_WITHIN = 20.0  # seconds for all requests of one call
MAX_EVENTS = 50  # the newest about one object
# Seconds to wait for an overloaded server; the questions of a longer pause stay without an answer.
MAX_HELD = 5.0
SAID_AT = (0, 9, 99, 999)  # other namespaces that refused: a cluster may have thousands
DEFAULT_HELD = 1.0  # seconds, after a 429 that does not say how long


class EvidenceReader:
    """Asks one cluster for evidence, slowly enough to be in nobody's way.

    A refusal is remembered for each source and namespace: roles may differ by namespace.
    """

    def __init__(
        self,
        client: LeaseClient,
        clock: Callable[[], datetime],
        *,
        within: float = WITHIN,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        self._client = client
        self._clock = clock
        self._within = within
        self._answer_within = answer_within
        self._pace = RequestPace()
        self._refusals: dict[tuple[Source, str], RefusedSource] = {}
        self._overload: ApiError = TooManyRequests(Status())
        self._failing = False

    async def answer(self, questions: Iterable[Question]) -> list[Fact]:
        """Return the facts that the cluster gives, each refusal once; the first questions go first.

        A question without an answer gives no fact: ask it again later.
        """
        asked = list(dict.fromkeys(questions))
        if not asked:
            return []
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.ask(question)) for question in asked]
            _, late = await asyncio.wait(tasks, timeout=self._answer_within)
            for task in late:
                task.cancel()
        answers = [task.result() for task in tasks if not task.cancelled()]
        errors = [one for one in answers if isinstance(one, ApiError)]
        self._report(len(errors) + len(late), len(asked), errors)
        found = [fact for one in answers if not isinstance(one, ApiError) for fact in one]
        return list(dict.fromkeys(found))

    def _report(self, unanswered: int, asked: int, errors: list[ApiError]) -> None:
        """Log the first failure after a success, with a cause if there is one."""
        if unanswered and not self._failing:
            cause = str(errors[0]) if errors else "the cluster is too slow"
            logger.warning("no evidence for %d of %d questions: %s", unanswered, asked, cause)
        self._failing = bool(unanswered)

    async def ask(self, question: Question) -> list[Fact] | ApiError:
        """Return what the cluster says to one question; an error if it does not."""
        place = (question.source, question.key.namespace)
        while (known := self._known(place)) is None:
            async with self._pace.turn():
                if (known := self._known(place)) is not None:
                    break
                try:
                    return await self._look_up(question)
                except (Forbidden, NotFound) as error:
                    return [self._refuse(place, error)]
                except TooManyRequests as error:
                    self._overload = error
                    self._pace.hold(error.retry_after or DEFAULT_HELD)
                except ApiError as error:
                    return error
        return known

    def _known(self, place: tuple[Source, str]) -> list[Fact] | ApiError | None:
        """Return what need not be asked: a refusal, or that the server wants to be left alone."""
        refusal = self._refusals.get(place)
        # A clock that was set back must not make it last.
        if refusal is not None and abs(self._clock() - refusal.at) < ASK_REFUSED_AGAIN:
            return [refusal]
        return self._overload if self._pace.held_for() > MAX_HELD else None

    async def _look_up(self, question: Question) -> list[Fact]:
        """Ask for one object. Raises ApiError; NotFound only if the whole resource is missing."""
        key, within = question.key, self._within
        if question.source is Source.EVENTS:
            events = await kube_objects.newest_events(
                self._client, question.kind, key, count=MAX_EVENTS, within=within
            )
            facts = (event_fact(one, question.kind, key) for one in events)
            return [fact for fact in facts if fact is not None]
        is_pod = question.source is Source.PODS
        try:
            if is_pod:
                return [
                    pod_fact(
                        await kube_objects.read_pod(self._client, key, within=within),
                        key,
                        self._clock(),
                    )
                ]
            node = await kube_objects.read_node(self._client, key.name, within=within)
        except NotFound as error:
            if not _names_object(error, key.name):
                raise
            now = self._clock()
            gone = PodFact(key=key, read_at=now, gone=True)
            return [gone if is_pod else NodeFact(name=key.name, read_at=now, gone=True)]
        return [node_fact(node, key.name, self._clock())]

    def _refuse(self, place: tuple[Source, str], error: ApiError) -> RefusedSource:
        source, namespace = place
        refusal = RefusedSource(source, self._clock(), str(error), namespace)
        if place not in self._refusals:
            others = sum(of is source for of, _ in self._refusals)
            if others in SAID_AT:
                where = f"{namespace or 'this cluster'}{f' and {others} others' if others else ''}"
                logger.info(
                    "%s cannot be read as evidence in %s: %s", source.capitalize(), where, error
                )
        self._refusals[place] = refusal
        return refusal


def _names_object(error: ApiError, name: str) -> bool:
    """Whether an answer 404 is about one object; that about a whole resource names none.

    Source: k8s.io/apimachinery/pkg/api/errors/errors.go (NewNotFound, NewGenericServerResponse).
    Some servers in between pass on the sentence alone.
    """
    details = error.status.details
    return (details is not None and bool(details.name)) or f'"{name}" not found' in str(error)
