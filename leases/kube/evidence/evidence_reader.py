"""Answer questions about Pods, Nodes and Events with facts, where the cluster lets us."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from leases.domain.cause.facts import (
    ASK_REFUSED_AGAIN,
    Fact,
    NodeFact,
    PodFact,
    Question,
    RefusedSource,
)
from leases.domain.cause.incident import Source
from leases.kube.evidence.events import newest_events
from leases.kube.evidence.pods_and_nodes import read_node, read_pod
from leases.kube.evidence.read_facts import event_fact, node_fact, pod_fact
from leases.kube.evidence.request_pace import RequestPace
from leases.kube.lease_client import LeaseClient
from leases.wire.status import ApiError, Forbidden, NotFound, Status, TooManyRequests

logger = logging.getLogger(__name__)

WITHIN = 5.0  # seconds for each request
ANSWER_WITHIN = 20.0  # seconds for all requests of one call
MAX_EVENTS = 50  # the newest about one object
# Seconds to wait for an overloaded server; the questions of a longer pause stay without an answer.
MAX_HELD = 5.0
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
            tasks = [group.create_task(self._answer(question)) for question in asked]
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

    async def _answer(self, question: Question) -> list[Fact] | ApiError:
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
            events = await newest_events(
                self._client, question.kind, key, count=MAX_EVENTS, within=within
            )
            facts = (event_fact(one, question.kind, key) for one in events)
            return [fact for fact in facts if fact is not None]
        is_pod = question.source is Source.PODS
        try:
            if is_pod:
                return [
                    pod_fact(await read_pod(self._client, key, within=within), key, self._clock())
                ]
            node = await read_node(self._client, key.name, within=within)
        except NotFound as error:
            if not _names_object(error):
                raise
            now = self._clock()
            gone = PodFact(key=key, read_at=now, gone=True)
            return [gone if is_pod else NodeFact(name=key.name, read_at=now, gone=True)]
        return [node_fact(node, key.name, self._clock())]

    def _refuse(self, place: tuple[Source, str], error: ApiError) -> RefusedSource:
        source, namespace = place
        refusal = RefusedSource(source, self._clock(), str(error), namespace)
        if place not in self._refusals:
            logger.info("%s cannot be read as evidence: %s", source.capitalize(), error)
        self._refusals[place] = refusal
        return refusal


def _names_object(error: ApiError) -> bool:
    """Whether an answer 404 is about one object; that about a whole resource names none.

    Source: k8s.io/apimachinery/pkg/api/errors/errors.go (NewNotFound, NewGenericServerResponse).
    """
    return error.status.details is not None and bool(error.status.details.name)
