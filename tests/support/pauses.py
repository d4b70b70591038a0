"""A small cluster by the clock of a test, and boards that watch it, stop, and start again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from leases.domain.cause.casebook import Casebook
from leases.domain.cause.clue import Clue
from leases.domain.cause.facts import Fact, Question, RefusedSource
from leases.domain.cause.going_on import Wait
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause, Incident
from leases.domain.kind import Kind
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update
from leases.tracking.tracker import Tracker
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Connected,
    Deleted,
    Disconnected,
    Listed,
    ReflectorEvent,
)
from tests.support.values.leases import after

ELECTIONS, NODES = 12, 20
STEP = timedelta(seconds=0.5)
Answers = Callable[[Question, datetime], Iterable[Fact]]


def pod(index: int, letters: str = "q89c") -> str:
    """A Pod of the election with this number."""
    return f"app-{index}-6bcjktn59v-{letters}{'bcdfghjklmnp'[index]}"


class Holder(msgspec.Struct):
    """One Lease and who renews it; `silent`: until then nobody does."""

    key: ObjectName
    identity: str
    every: float
    duration: int
    next: float
    acquired: float = 0.0
    renewed: float = 0.0
    transitions: int | None = None
    version: int = 0
    silent: float = -1.0
    born: int = -1000

    def lease(self) -> Lease:
        meta = ObjectMeta(
            name=self.key.name, namespace=self.key.namespace,
            uid=f"uid-{self.key.name}-{self.born}", resource_version=str(self.version),
            creation_timestamp=after(self.born),
        )  # fmt: skip
        spec = LeaseSpec(
            holder_identity=self.identity, lease_duration_seconds=self.duration,
            acquire_time=None if self.transitions is None else after(self.acquired),
            renew_time=after(self.renewed), lease_transitions=self.transitions,
        )  # fmt: skip
        return Lease(meta, spec)


class Cluster:
    """Elections of Pods and heartbeats of nodes, each renewed by its own rhythm while it is on."""

    def __init__(self, elections: int = ELECTIONS, nodes: int = NODES) -> None:
        self.version = 1000
        self.on = True
        self.holders = [
            Holder(
                ObjectName("team", f"app-{i}"),
                pod(i),
                2.0,
                15,
                next=2.0 * i / elections,
                transitions=0,
            )
            for i in range(elections)
        ] + [
            Holder(
                ObjectName("kube-node-lease", f"node-{i}"),
                f"node-{i}",
                10.0,
                40,
                next=10.0 * i / nodes,
            )
            for i in range(nodes)
        ]
        for one in self.holders:
            self.version += 1
            one.version = self.version

    def run(self, now: float) -> list[Lease]:
        """Let everybody renew who is due. Returns what was written."""
        written = []
        for one in self.holders:
            while self.on and one.next <= now and one.next >= one.silent:
                one.renewed, one.next = one.next, one.next + one.every
                self.version += 1
                one.version = self.version
                written.append(one.lease())
            if one.next < one.silent and one.silent <= now:
                one.next = one.silent
        return written

    def off(self) -> None:
        self.on = False

    def back(self, now: float, *, takers: bool = True) -> None:
        """Everybody begins anew; other Pods take the elections where there are `takers`."""
        self.on = True
        for i, one in enumerate(self.holders):
            one.next = now + 0.3 + one.every * i / len(self.holders)
            if one.transitions is not None and takers:
                one.identity = pod(i, "z7xk")
                one.transitions += 1
                one.acquired = max(one.next, one.renewed + one.duration + 0.5)
                one.next = one.acquired

    def move(self, index: int, to: str, at: float) -> None:
        """Another one holds an election from then on."""
        one = self.holders[index]
        one.identity, one.acquired, one.next = to, at, at
        one.transitions = (one.transitions or 0) + 1

    def remake(self, index: int, at: float) -> tuple[Deleted, Applied]:
        """Somebody deleted an election, and its holder made it again at `at`."""
        one = self.holders[index]
        one.version = self.version + 1
        gone = Deleted(one.lease())
        self.version = one.version = one.version + 1
        one.acquired = one.renewed = at
        one.born, one.next = int(at), at + one.every
        return gone, Applied(one.lease(), line=_MADE % after(one.born).isoformat().encode())


_MADE = (
    b'{"object": {"metadata": {"managedFields": [{"manager": "app", "operation": "Update", '
    b'"time": "%s", "fieldsV1": {"f:spec": {"f:holderIdentity": {}}}}]}}}'
)


class Board:
    """One run of a board: it follows the cluster by the clock of the test."""

    def __init__(
        self,
        cluster: Cluster,
        now: float,
        *,
        hosted: bool = False,
        earlier: Board | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.cluster = cluster
        self.now = now
        self.store = Store("c")
        self.casebook = Casebook("c", hosted=hosted)
        self.told: dict[str, Incident] = dict(earlier.told) if earlier else {}
        self.changes: list[Change] = list(earlier.changes) if earlier else []
        self.updates: list[Update] = []
        self.connected = False
        self._answers = answers or _refused
        if earlier is not None:
            watched_until = after(earlier.now)
            self.store.restore(_stored(earlier.store.snapshot()), watched_until)
            going_on = [one for one in self.told.values() if _may_change(one)]
            losses = {one.id: _losses(one, self.changes) for one in going_on}
            breaks = earlier.casebook.breaks
            blind = [(one.since, one.until) for one in breaks if one.until is not None]
            self.casebook.restore(going_on, watched_until, blind, losses, self._wait_of)
        self.tracker = Tracker(self.store, [self._sink], lambda: after(self.now))
        if earlier is not None:
            self.tracker.resource_version = earlier.tracker.resource_version

    def _wait_of(self, key: ObjectName) -> Wait | None:
        tracked = self.store.get(key)
        if tracked is None or tracked.gap_since is None:
            return None
        return Wait(tracked.gap_since, tracked.lasts)

    def connect(self, *, listed: bool = True) -> None:
        leases = tuple(one.lease() for one in self.cluster.holders)
        if listed:
            self._handle(Listed(leases, str(self.cluster.version)))
        self._handle(Connected())
        self.connected = True

    def cut(self) -> None:
        self.connected = False
        self._handle(Disconnected("The API server refused the connection."))

    def until(self, seconds: float) -> None:
        """Let the clock come so far; what is written arrives at once."""
        while self.now < seconds:
            self.now = min(seconds, self.now + STEP.total_seconds())
            written = self.cluster.run(self.now)
            if written and self.connected:
                self._handle(Arrived(tuple(map(Applied, written))))
            self.tracker.tick()
            self._review()

    def arrive(self, written: Iterable[Lease]) -> None:
        """A watch that goes on brings what was written meanwhile."""
        if events := tuple(map(Applied, written)):
            self._handle(Arrived(events))

    def stands_still(self, seconds: float) -> None:
        """No step is made for so long, and nothing arrives meanwhile."""
        self.now += seconds

    def stop(self) -> None:
        self.tracker.stop()

    def _handle(self, event: ReflectorEvent) -> None:
        self.tracker.handle(event)

    def _sink(self, update: Update) -> None:
        self.updates.append(update)
        self.changes += update.changes
        if update.missed is not None:
            self.casebook.missed(update.missed)
        if update.connection is not None:
            self.casebook.watch(update.connection, update.now)
        for clue in update.clues:
            self.casebook.note(clue)

    def _review(self) -> None:
        now = after(self.now)
        hearts = self.store.counts().get(Kind.HEARTBEAT, {})
        self.casebook.count(sum(hearts.values()))
        for question in self.casebook.questions(now):
            self.casebook.learn(self._answers(question, now))
        for incident in self.casebook.review(now):
            self.told[incident.id] = incident

    @property
    def incidents(self) -> list[Incident]:
        return [one for one in self.told.values() if one.members and not one.part_of]

    def of(self, index: int) -> Tracked:
        found = self.store.get(self.cluster.holders[index].key)
        assert found is not None
        return found

    def losses(self, since: float) -> list[Change]:
        """The changes from then on by which somebody lost a Lease, or had it again."""
        return [
            one
            for one in self.changes
            if one.at >= after(since) and one.change is not ChangeType.CREATED
        ]


def watching(cluster: Cluster, until: float, *, hosted: bool = False) -> Board:
    """A board that has watched since noon."""
    board = Board(cluster, 0.0, hosted=hosted)
    board.connect()
    board.until(until)
    return board


def _refused(question: Question, now: datetime) -> Iterable[Fact]:
    yield RefusedSource(question.source, now, "forbidden", question.key.namespace)


def _stored(leases: Iterable[Tracked]) -> list[Tracked]:
    return [msgspec.json.decode(msgspec.json.encode(one), type=Tracked) for one in leases]


def _losses(incident: Incident, changes: Iterable[Change]) -> list[Clue]:
    """What history has of what flaps."""
    if incident.cause is not Cause.FLAPPING or incident.ended is not None:
        return []
    clues = [Clue(change=one, observed_at=one.renewed_at) for one in changes]
    return [clue for clue in clues if clue.member in incident.members]


def _may_change(one: Incident) -> bool:
    return bool(one.members) and (one.ended is None or not one.settled)
