"""Make incidents of what happens in one cluster, for history, the open pages and the feed.

The sink only queues what the tracker saw. Two tasks do the rest, out of the way of the watch: one
reviews the casebook, the other asks the cluster for evidence, which may take long.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import DatabaseError, InterfaceError
from msgspec.structs import replace

from dashboard.live.publisher import ClusterHub
from dashboard.watched_cluster import WatchedCluster
from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import Clue
from leases.domain.cause.facts import Fact, Question
from leases.domain.cause.going_on import Wait
from leases.domain.change import ChangeType
from leases.domain.figures import Span
from leases.domain.incident import Cause, Incident, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.audit_trail import deleted_here
from leases.history.find_incidents import (
    losses_of,
    open_incidents,
    unexplained_changes,
    written_by_persons,
)
from leases.history.insert_incidents import Reviewed
from leases.history.recorder import Recorder
from leases.history.watched_spans import blind_between
from leases.tracking.tracked_lease import Update
from leases.worker_threads import WorkerThreads

logger = logging.getLogger(__name__)

COLLECT = 0.1  # seconds in which clues are collected
LOOK_SECONDS = 1.0  # at least, between two looks while incidents may still change
CLUES_AT_ONCE = 100  # then the event loop turns to other tasks
BUSY_SHARE = 0.01  # of a core that reviews may take, as long as they come often enough:
LONGEST_PAUSE = 5.0  # seconds between two of a large incident
QUESTIONS_AT_ONCE = 40  # so that the first answers do not wait for the last
# Before the last stop: what happened then may belong to an incident that was not written yet.
JUDGED_AGAIN = timedelta(minutes=5)
RECALLED = timedelta(days=1)  # before it: what persons wrote then may run out now
AUDIT_SECONDS = 5.0  # causes wait no longer for a database that does not answer
MAX_QUEUED = 200_000  # clues; more than a large cluster has Leases

# Of all clusters: when they fail together, a thread for each would leave the event loop no GIL.
_threads = WorkerThreads("incidents", 2)


class Incidents:
    """Those of one cluster. `restore` once, then `run` and `look_up`, again after each death."""

    def __init__(
        self,
        cluster: WatchedCluster,
        hub: ClusterHub,
        recorder: Recorder,
        clock: Callable[[], datetime],
        look: Callable[[], object] = bool,
    ) -> None:
        """`look` is called before each review; after a time in which nothing ran it says so."""
        self._cluster = cluster
        self._hub = hub
        self._recorder = recorder
        self._clock = clock
        self._look = look
        self._casebook = self._new_casebook()
        self._open: dict[str, Incident] = {}  # not ended, or not settled
        self._updates: deque[Update] = deque()
        self._queued = 0  # clues in them
        self._facts: deque[Fact] = deque()
        self._questions: dict[Question, None] = {}
        self._wake = asyncio.Event()
        self._asked = asyncio.Event()
        self.begins_anew = False
        hub.going_on = self.going_on

    def _new_casebook(self) -> Casebook:
        return Casebook(self._cluster.name, hosted=self._cluster.embedded)

    def going_on(self) -> tuple[Incident, ...]:
        """The incidents that have not ended, oldest first. Any thread may call it."""
        found = [one for one in tuple(self._open.values()) if one.ended is None]
        return tuple(sorted(found, key=lambda one: (one.began, one.id)))

    async def restore(self, stopped_at: datetime | None) -> None:
        """Go on with what an earlier run, or another replica, left open.

        A process that is killed loses the incidents that it had not written: judge the changes
        again that have no cause yet.
        """
        name, in_thread = self._cluster.name, self._recorder.in_thread
        stored = await in_thread(partial(open_incidents, name))
        self._open = {one.id: one for one in stored}
        waits = [one.unheld_since for one in stored if one.unheld_since is not None]
        flapping = [one for one in stored if one.cause is Cause.FLAPPING and one.ended is None]
        waits += [one.began for one in flapping]
        blind: Sequence[Span] = ()
        if waits and stopped_at is not None:
            times = {"since": min(waits), "until": stopped_at, "now": stopped_at}
            blind = await in_thread(partial(blind_between, name, **times))
        losses = {one.id: await in_thread(partial(losses_of, one)) for one in flapping}
        self._casebook.restore(stored, stopped_at, blind, losses, self._wait_of)
        clues: list[Clue] = []
        if stopped_at is not None:
            written = await in_thread(partial(written_by_persons, name, stopped_at - RECALLED))
            self._casebook.recall(written)
            since = stopped_at - JUDGED_AGAIN
            clues = await in_thread(partial(unexplained_changes, name, since))
        known = {member for one in stored for member in one.members}
        unmarked = known.intersection(clue.member for clue in clues)
        self._recorder.restore_incidents(name, stored, unmarked)
        for clue in clues:
            if clue.member not in known:
                self._note(clue)

    def _wait_of(self, key: ObjectName) -> Wait | None:
        tracked = self._cluster.store.get(key)
        if tracked is None or tracked.gap_since is None:
            return None
        return Wait(tracked.gap_since, tracked.lasts)

    def take(self, update: Update) -> None:
        """Queue what the tracker saw."""
        if not (update.clues or update.connection or update.missed):
            return
        if update.clues and self._queued > MAX_QUEUED:
            logger.error("%s: the causes of some changes are not looked for", update.cluster)
            return
        self._updates.append(update)
        self._queued += len(update.clues)
        self._wake.set()

    async def run(self) -> None:
        """Review what happened, again and again, until cancelled."""
        try:
            while True:
                await self._step()
        except Exception:
            self.begin_anew()
            raise

    def begin_anew(self) -> None:
        """After a failed review or a clock jump: go on with what is known of the open incidents."""
        self.begins_anew = True
        self._wake.set()

    async def _step(self) -> None:
        """Review once, then wait until there may be more."""
        if self.begins_anew:
            self.begins_anew = False
            earlier, self._casebook = self._casebook, self._new_casebook()
            self._casebook.remember(earlier)
            losses, wait_of = earlier.losses(), self._wait_of
            self._casebook.restore(self._open.values(), losses=losses, wait_of=wait_of)
        self._wake.clear()
        hearts = self._cluster.store.counts().get(Kind.HEARTBEAT, {})
        self._casebook.count(sum(hearts.values()))
        self._look()
        await self._read_updates()
        now, spent = self._clock(), 0.0
        due = self._casebook.next_look(now)
        if self._facts or (due is not None and due <= now):
            if self._casebook.is_small:
                news, questions, spent = self._review(now)
            else:  # that of an incident of thousands of Leases takes long
                news, questions, spent = await _threads.run(self._review, now)
            self._report(news, now)
            self._ask(questions)
        await asyncio.sleep(min(max(COLLECT, spent / BUSY_SHARE), LONGEST_PAUSE))
        await self._rest(self._clock())

    async def _rest(self, now: datetime) -> None:
        """Wait as long as neither time nor anybody changes anything."""
        due, timer = self._casebook.next_look(now), None
        if due is not None:
            rest = max(LOOK_SECONDS, (due - now).total_seconds())
            timer = asyncio.get_running_loop().call_later(rest, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def look_up(self) -> None:
        """Ask the cluster for evidence, until cancelled."""
        while True:
            await self._asked.wait()
            some = tuple(self._questions)[:QUESTIONS_AT_ONCE]
            for question in some:
                del self._questions[question]
            if not self._questions:
                self._asked.clear()
            if self._cluster.client is None:
                continue
            facts = await self._cluster.evidence.answer(some)
            self._facts += facts
            self._cluster.pods.learn(facts)
            self._wake.set()

    async def _read_updates(self) -> None:
        read = 0
        while self._updates:
            update = self._updates.popleft()
            self._queued -= len(update.clues)
            if update.missed is not None:
                self._casebook.missed(update.missed)
            if update.connection is not None:
                self._casebook.watch(update.connection, update.now)
            for clue in await self._with_forms(update.clues):
                self._note(clue)
                read += 1
                if read % CLUES_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _with_forms(self, clues: Sequence[Clue]) -> Sequence[Clue]:
        """Tell which Leases a form of ours deleted: a deletion leaves no field manager."""
        changes = [one.change for one in clues]
        gone = [one for one in changes if one.change is ChangeType.DELETED and not one.inferred]
        if not gone:
            return clues
        try:
            async with asyncio.timeout(AUDIT_SECONDS):
                here = await self._recorder.in_thread(partial(deleted_here, gone))
        except (DatabaseError, InterfaceError, TimeoutError) as error:
            logger.warning("%s: the audit trail cannot be read: %s", self._cluster.name, error)
            return clues
        return [replace(one, by_person=True) if one.change in here else one for one in clues]

    def _note(self, clue: Clue) -> None:
        try:
            self._casebook.note(clue)
        except Exception:
            logger.exception("%s: the cause of a change is skipped", clue.key)

    def _review(self, now: datetime) -> tuple[list[Incident], list[Question], float]:
        """Return the news, what to look up, and the seconds of CPU that it took."""
        began = time.thread_time()
        facts = [self._facts.popleft() for _ in range(len(self._facts))]
        self._casebook.learn(facts)
        news, questions = self._casebook.review(now), self._casebook.questions(now)
        return news, questions, time.thread_time() - began

    def _report(self, news: list[Incident], now: datetime) -> None:
        if not news:
            return
        counts = self._cluster.counters.incidents
        for one in news:
            known = self._open.pop(one.id, None)
            counted = not one.part_of and one.standing is not Standing.REMARK
            if one.settled and counted and not (known is not None and known.settled):
                counts[one.cause] += 1
            if not (one.part_of or (one.settled and one.ended)):
                self._open[one.id] = one
        self._recorder.record_incidents(self._cluster.name, [Reviewed(one, now) for one in news])
        self._hub.publish_incidents(news, now)

    def _ask(self, questions: Iterable[Question]) -> None:
        self._questions.update(dict.fromkeys(questions))
        if self._questions:
            self._asked.set()
