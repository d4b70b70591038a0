"""What is known beside the Leases: facts of Pods, Nodes and Events, refusals, broken watches.

Source: k8s.io/api/core/v1/types.go (Pod, ContainerStatus, Node, Event).

Facts are kept by name and time, so the order in which they arrive makes no difference.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from leases.domain.incident import Source
from leases.domain.lease import ObjectName
from leases.domain.watched_times import BRIEF, Connection, ConnectionState, MissedTime, Missing


class PodFact(msgspec.Struct, frozen=True, kw_only=True):
    """One Pod as it was at `read_at`. `gone`: the cluster had no Pod of that name then."""

    key: ObjectName
    read_at: datetime
    gone: bool = False
    uid: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""  # of the status, such as Evicted
    owner_kind: str = ""  # of the controller: ReplicaSet, StatefulSet, DaemonSet, Node
    owner_name: str = ""
    revision: str = ""  # label controller-revision-hash or pod-template-hash
    created_at: datetime | None = None
    deleted_at: datetime | None = None  # deletionTimestamp
    restarts: int = 0  # of all containers together
    exit_reason: str = ""  # of the container that ended last, such as OOMKilled, Error, Completed
    exit_code: int | None = None
    exited_at: datetime | None = None
    ran_from: datetime | None = None  # when the container that ended last had started
    started_at: datetime | None = None  # of the container that started last
    waiting: str = ""  # why a container does not run, such as CrashLoopBackOff
    ready: str = ""  # of the condition Ready: True, False or Unknown
    ready_since: datetime | None = None  # its lastTransitionTime
    disrupted: str = ""  # reason of the condition DisruptionTarget, such as EvictionByEvictionAPI
    container: str = ""  # whose log tells most: the one that ended last, else the usual one
    ran_before: bool = False  # it ended and was started anew, so there is a log of before


class NodeFact(msgspec.Struct, frozen=True, kw_only=True):
    """One Node as it was at `read_at`."""

    name: str
    read_at: datetime
    gone: bool = False
    ready: str = ""  # True, False or Unknown
    ready_since: datetime | None = None  # lastTransitionTime of the condition Ready
    ready_reason: str = ""
    cordoned: bool = False


class EventFact(msgspec.Struct, frozen=True, kw_only=True):
    """One Event. `kind` and `key` name the object it is about; a Node's namespace is empty."""

    kind: str
    key: ObjectName
    reason: str
    message: str
    at: datetime
    component: str = ""
    host: str = ""  # the node of the kubelet that wrote it
    times: int = 1


ASK_REFUSED_AGAIN = timedelta(minutes=10)


class RefusedSource(msgspec.Struct, frozen=True):
    """The cluster does not serve a source, or forbids it: an answer is not to be expected."""

    source: Source
    at: datetime
    detail: str  # the API's sentence
    namespace: str = ""  # where: roles may differ by namespace; a Node's is empty


Fact = PodFact | NodeFact | EventFact | RefusedSource


class Question(msgspec.Struct, frozen=True):
    """What to look up: one object, and the Events about it if `source` is EVENTS.

    A Lease often lies in another namespace than its holder's Pod. So if there is no Pod in
    `key.namespace`, look for its name in all namespaces. The fact has the namespace where the Pod
    was found, or that of the question if it is gone.
    """

    source: Source
    key: ObjectName  # a Node's namespace is empty
    kind: str = ""  # of EVENTS: Pod, Node, Lease


MAX_OBJECTS = 4000
FIRST, LAST = 4, 6  # readings of one object that are kept
MAX_EVENTS = 60  # about one object
# Of the usual writes: with fewer, the cluster did not go on while we did not watch. A pause of our
# own says nothing of the API server, so that others must have written less.
HARDLY, HARDLY_AT_ALL = 0.4, 0.2

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", PodFact, NodeFact)


EARLIEST = datetime.min.replace(tzinfo=UTC)


class Break:
    """A time in which we did not watch; `until` is None while it goes on.

    `wrote`: the share of the usual writes that came in it; None: unknown.
    """

    def __init__(self, since: datetime, why: Missing = Missing.LOST) -> None:
        self.since = since
        self.why = why
        self.until: datetime | None = None
        self.wrote: float | None = None
        self.hosted = False  # the Lease API ran in our process, so that it was off as well

    @property
    def is_brief(self) -> bool:
        return self.until is not None and self.until - self.since <= BRIEF

    @property
    def of_all(self) -> bool:
        """Whether it is known that nobody could write, or that hardly anybody did."""
        return self.hosted or (self.wrote is not None and self.wrote < self._hardly)

    @property
    def went_on(self) -> bool:
        """Whether others went on writing while we were not there."""
        return self.wrote is not None and self.wrote >= self._hardly

    @property
    def _hardly(self) -> float:
        return HARDLY if self.why is Missing.LOST else HARDLY_AT_ALL

    @property
    def of_the_api(self) -> bool:
        """Whether the API server may have been gone, not only our watch of it."""
        lost = self.why is Missing.LOST and not self.went_on
        return self.since > EARLIEST and (lost or self.of_all)

    def overlaps(self, since: datetime, until: datetime) -> bool:
        return since <= (self.until or until) and self.since < until


class Knowledge:
    def __init__(self, *, hosted: bool = False) -> None:
        """`hosted`: the cluster is the Lease API of this very process."""
        self._hosted = hosted
        self._pods: dict[str, list[PodFact]] = {}
        self._nodes: dict[str, list[NodeFact]] = {}
        self._events: dict[tuple[str, str], list[EventFact]] = {}
        # Source and namespace -> when it was last refused. Roles may differ by namespace.
        self.refusals: dict[tuple[Source, str], datetime] = {}
        self.breaks: deque[Break] = deque(maxlen=100)
        self._unheard_since: datetime | None = None  # also where no break says so yet

    def learn(self, facts: Iterable[Fact]) -> set[str]:
        """Add facts. Returns the names of the objects they are about."""
        names = set()
        for fact in facts:
            if isinstance(fact, PodFact):
                _keep(_room(self._pods, fact.key.name), fact)
                names.add(fact.key.name)
            elif isinstance(fact, NodeFact):
                _keep(_room(self._nodes, fact.name), fact)
                names.add(fact.name)
            elif isinstance(fact, EventFact):
                events = _room(self._events, (fact.kind, fact.key.name))
                if fact not in events:
                    insort(events, fact, key=lambda one: (one.at, one.reason, one.message))
                    del events[:-MAX_EVENTS]
                names.add(fact.key.name)
            else:
                place = (fact.source, fact.namespace)
                self.refusals[place] = max(fact.at, self.refusals.get(place, fact.at))
        return names

    def watch(self, connection: Connection, now: datetime) -> Break | None:
        """Note a break of our watch, or its end. Returns the break."""
        if connection.state is ConnectionState.LIVE:
            self._unheard_since = None
        elif self._unheard_since is None:
            self._unheard_since = connection.heard_at or connection.since
        last = self.breaks[-1] if self.breaks and self.breaks[-1].until is None else None
        if connection.state is ConnectionState.STALE and last is None:
            self.breaks.append(Break(connection.heard_at or connection.since))
            return self.breaks[-1]
        if connection.state is ConnectionState.LIVE and last is not None:
            last.until = now
            return last
        return None

    def recall(self, blind: Iterable[tuple[datetime, datetime]]) -> None:
        """Note the times before the last stop that nobody watched, oldest first."""
        for since, until in blind:
            self._add(Break(since, Missing.STOPPED)).until = until

    def stopped(self, since: datetime) -> None:
        """Note that no process watched since then."""
        self._add(Break(since, Missing.STOPPED))

    def missed(self, missed: MissedTime) -> Break:
        """Note a time that we missed, or what is known of it now. Returns it."""
        since = missed.since or EARLIEST
        found = next((one for one in self.breaks if _is_same(one, missed)), None)
        if found is None:
            found = self._add(Break(since, missed.why))
        found.until, found.wrote = missed.until, missed.wrote
        return found

    def _add(self, found: Break) -> Break:
        ours = found.why is not Missing.LOST and found.since > EARLIEST
        found.hosted = self._hosted and ours
        self.breaks.append(found)
        return found

    def unwatched(self, since: datetime, until: datetime) -> Break | None:
        """Return the first time in it that we did not watch, brief ones left out."""
        for one in self.breaks:
            if not one.is_brief and one.overlaps(since, until):
                return one
        return None

    def kept_waiting(self, since: datetime, until: datetime, within: timedelta) -> Break | None:
        """Return the time between two moments in which nobody could write, if it was not brief and
        ended no longer than `within` before the later one.
        """
        for one in self.breaks:
            ended = one.until
            if ended is None or one.is_brief or not one.of_all:
                continue
            if since <= one.since < until <= ended + within:
                return one
        return None

    @property
    def is_broken(self) -> bool:
        """Whether nobody watches now."""
        return self._unheard_since is not None or any(one.until is None for one in self.breaks)

    def blind(self, now: datetime) -> list[tuple[datetime, datetime]]:
        """Return the times up to now that nobody watched."""
        spans = [(one.since, one.until or now) for one in self.breaks]
        if self._unheard_since is not None and all(one.until is not None for one in self.breaks):
            spans.append((self._unheard_since, now))
        return spans

    def broken(self, since: datetime, until: datetime) -> float:
        """Return for how many seconds of that time our watch was broken, short breaks left out, and
        those in which others went on writing, or the renewal at `since` came.
        """
        total = 0.0
        for one in self.breaks:
            end = one.until or until
            if one.since + BRIEF < since < end:
                continue
            if one.why is Missing.LOST and not one.went_on and end - one.since >= BRIEF:
                total += max(0.0, (min(end, until) - max(one.since, since)).total_seconds())
        return total

    def pods(self, name: str, namespace: str) -> list[PodFact]:
        """Return what was read of a Pod, oldest first; of its own namespace where it is there."""
        found = self._pods.get(name, [])
        here = [one for one in found if one.key.namespace == namespace and not one.gone]
        if here or not found:
            return [one for one in found if one.key.namespace == namespace]
        return found

    def nodes(self, name: str) -> list[NodeFact]:
        return self._nodes.get(name, [])

    def events(self, kind: str, name: str) -> list[EventFact]:
        return self._events.get((kind, name), [])

    def refused(self, source: Source, namespace: str, now: datetime) -> bool:
        """Whether a source was refused in a namespace lately. A Node's namespace is empty."""
        at = self.refusals.get((source, namespace))
        return at is not None and now - at < ASK_REFUSED_AGAIN


def _is_same(one: Break, missed: MissedTime) -> bool:
    """Whether a time that we know is this one: it may go on, or its end is told again."""
    if one.why is not missed.why:
        return False
    since = missed.since or EARLIEST
    return one.until is None or one.since == since


def node_of_events(events: Iterable[EventFact]) -> str:
    """Return the node of the kubelet that wrote one, or that the scheduler named."""
    for event in events:
        if event.component == "kubelet" and event.host:
            return event.host
        if event.reason == "Scheduled" and " to " in event.message:
            return event.message.rpartition(" to ")[2].strip()
    return ""


def _room(known: dict[K, list[V]], key: K) -> list[V]:
    """Return the list of one object; the object that is longest known makes room."""
    found = known.get(key)
    if found is None:
        if len(known) >= MAX_OBJECTS:
            del known[next(iter(known))]
        found = known[key] = []
    return found


def _keep(readings: list[R], fact: R) -> None:
    if fact not in readings:
        # Facts of one moment have the same order whichever was learned first.
        insort(readings, fact, key=lambda one: (one.read_at, repr(one)))
        del readings[FIRST:-LAST]
