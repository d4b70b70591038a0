"""What one cluster's feed knows beside the state of the Leases: what happened lately, and what now.

`dashboard.live.publisher` fills it and sends it; pages and metrics read it, from any thread.

A page carries the stamp of its drawing: the number of the last move, and the moment. The process
that drew the page goes by the number. Replicas count apart from each other, so another process goes
by the moment.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from dashboard import clock
from dashboard.watched_cluster import NodeBook
from leases.domain.cause.node_groups import OF_A_CROWD
from leases.domain.change import Change, ChangeType, identity
from leases.domain.flapping import Flapping, flapping
from leases.domain.incident import Cause, Incident, Unlisted
from leases.domain.lease import ObjectName
from leases.history.activity import Activity
from leases.history.deliveries import FailingReceiver
from leases.history.outbox import Care
from leases.history.refused_rows import RefusedValue
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Tracked, Update

KEPT = 256
MAX_NAMED = 50  # Leases of one move; more of them may concern any list
PROCESS = int(time.time() * 1_000_000)  # no number of a move is that of a process
LAG = 1.0  # seconds that one replica may be behind another
MOMENT = 0.002  # seconds: a stamp has thousandths


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Leases that look different, appeared or went, or incidents that began, changed or ended."""

    number: int
    at: float
    seq: int  # the number of the feed before it
    turn: int  # the turn of incidents before it
    keys: Collection[ObjectName] | None  # None: too many to name
    created: Collection[ObjectName]  # of the keys
    incidents: bool


def created_in(update: Update) -> set[ObjectName]:
    return {
        ObjectName(change.namespace, change.name)
        for change in update.changes
        if change.change is ChangeType.CREATED
    }


class MoveLog:
    """The newest moves of one cluster. Any thread may read `stamp`."""

    def __init__(self) -> None:
        # In microseconds the numbers of two processes do not meet.
        self.number = self._first = int(time.time() * 1_000_000)
        self._began = clock.now().timestamp()
        self._kept: deque[Move] = deque(maxlen=KEPT)

    @property
    def stamp(self) -> str:
        """What a page carries: read it before what the page shows. A repeat is harmless."""
        return f"{self.number}-{clock.now().timestamp():.3f}"

    def add(
        self,
        *,
        seq: int,
        turn: int,
        keys: Collection[ObjectName] = (),
        created: Collection[ObjectName] = (),
        incidents: bool = False,
    ) -> None:
        named = len(keys) <= MAX_NAMED
        move = Move(
            number=self.number + 1,
            at=clock.now().timestamp(),
            seq=seq,
            turn=turn,
            keys=keys if named else None,
            # The same objects: the last moves name many Leases.
            created=tuple([key for key in keys if key in created]) if named else (),
            incidents=incidents,
        )
        self._kept.append(move)
        self.number = move.number

    def since(self, stamp: str, known: int | None) -> list[Move] | None:
        """The moves after a drawing; None where some are not known any more.

        `known` is the last number that the page knows of. A drawing by another process does not get
        again what came before it: else the page would fetch without end.
        """
        number, moment = _read(stamp)
        if self._first <= number <= self.number:
            lost = self.number - len(self._kept) > number
            return None if lost else [move for move in self._kept if move.number > number]
        if known is None:
            full = len(self._kept) == KEPT
            if moment < (self._kept[0].at if full else self._began):
                return None
        return [m for m in self._kept if m.at > moment - LAG and m.number > (known or 0)]

    def first_since(self, stamp: str) -> Move | None:
        """The first move after the moment of a drawing; None: there was none."""
        number, moment = _read(stamp)
        since = moment - (0.0 if number == PROCESS else LAG)
        if not self._kept or self._kept[-1].at <= since:
            return None
        return next((move for move in self._kept if move.at > since), None)

    def seq_at(self, stamp: str, seq: int) -> int:
        """The feed's number when another process drew a page; `seq` is the present one."""
        move = self.first_since(stamp)
        return seq if move is None else move.seq

    def reaches(self, stamp: str) -> bool:
        """Whether every move since the moment of a drawing is known yet."""
        full = len(self._kept) == KEPT
        return _read(stamp)[1] >= (self._kept[0].at if full else self._began)


def stamp_of(feeds: Iterable["ClusterFeed"]) -> str:
    """As a cluster's own, of a page over several: read it before what the page shows. It goes back
    to before the oldest change that history may lack.
    """
    moment = clock.now()  # first: what comes meanwhile is later than the stamp
    waits = [one for feed in feeds if (one := feed.lacking_since()) is not None]
    return f"{PROCESS}-{min([moment, *waits]).timestamp() - MOMENT:.3f}"


def _read(stamp: str) -> tuple[int, float]:
    """Read a stamp; one of another form is older than all moves."""
    number, _, moment = stamp.partition("-")
    try:
        return int(number[:20]), float(moment[:20])
    except ValueError:
        return 0, 0.0


KEPT_EXPLAINABLE = 1000  # changes
Recent = deque[tuple[int, Change]]  # changes with their number in the feed, oldest first


class ExplainableChanges:
    """The newest changes of a cluster, also those that no frame brought."""

    def __init__(self) -> None:
        self._kept: dict[tuple[ObjectName, str], Change] = {}  # oldest first

    def add(self, changes: Sequence[Change]) -> None:
        """Take these changes, oldest first."""
        for change in changes[-KEPT_EXPLAINABLE:]:
            self._kept[_member(change)] = change
        while len(self._kept) > KEPT_EXPLAINABLE:
            del self._kept[next(iter(self._kept))]

    def explain(self, incidents: Iterable[Incident], recent: Recent) -> list[Change]:
        """Write cause and incident into the changes, also into `recent`.

        Returns those that they differ for, oldest first.
        """
        found: dict[tuple[ObjectName, str], Change] = {}
        for incident in incidents:
            for one, cause in incident.causes.items():
                change = self._kept.get((one.lease, one.identity))
                if change is None:
                    continue
                known = msgspec.structs.replace(change, cause=cause, incident=incident.id)
                given_up = incident.settled and incident.cause is Cause.UNKNOWN
                if known != change or given_up:  # then nobody looks for the cause any more
                    self._kept[one.lease, one.identity] = found[one.lease, one.identity] = known
            if incident.unlisted is not None:
                found |= self._explain_unlisted(incident, incident.unlisted)
        for place, (seq, change) in enumerate(recent if found else ()):
            recent[place] = (seq, found.get(_member(change), change))
        return sorted(found.values(), key=lambda change: change.at)

    def _explain_unlisted(
        self, incident: Incident, unlisted: Unlisted
    ) -> dict[tuple[ObjectName, str], Change]:
        found = {
            key: msgspec.structs.replace(change, cause=incident.cause, incident=incident.id)
            for key, change in self._kept.items()
            if change.incident in (None, incident.id)
            and change.cause is not incident.cause
            and change.change in OF_A_CROWD
            and unlisted.counts(change.kind, change.at)
        }
        self._kept |= found
        return found

    def with_cause(self, change: Change) -> Change:
        """The change of history with the cause that is known here. For any thread."""
        known = self._kept.get(_member(change))
        if known is None or known.incident is None:
            return change
        return msgspec.structs.replace(change, cause=known.cause, incident=known.incident)


def _member(change: Change) -> tuple[ObjectName, str]:
    """What an incident calls a change."""
    return ObjectName(change.namespace, change.name), identity(change)


MAX_FLAPPING = 1000  # Leases that are listed
FEW = 200  # from so many Leases with many changes on, they are judged less often
SPACING = 0.0001  # seconds for each of them
Flappers = Mapping[ObjectName, Flapping]


def flapping_of(activity: Activity, tracked: Tracked, now: datetime) -> Flapping | None:
    """How one Lease flaps, by the rule of its present kind, since it is watched."""
    changes = activity.last_hour.of(tracked.key)
    if not changes:
        return None
    return flapping(changes, tracked.kind, now, watched_since=activity.watched.since)


class FlappingLeases:
    """The Leases of one cluster that flap, most changes first. Any thread may ask."""

    def __init__(self, store: Store, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self._judged: tuple[tuple[int, ...], Flappers] = ((), {})
        self._until = 0.0

    def at(self, now: datetime) -> Flappers:
        """Judge again each second, and when a Lease changed. The same answer is the same object."""
        stamp = (int(now.timestamp()), self._activity.last_hour.version, self._store.seq)
        known, found = self._judged
        if known != stamp and time.monotonic() >= self._until:
            often = self._activity.last_hour.often()
            judged = sorted(islice(self._found(often, now), MAX_FLAPPING), key=_most_changes)
            fresh = dict(judged)
            found = found if fresh == found else fresh
            self._judged = stamp, found
            self._until = time.monotonic() + SPACING * len(often) if len(often) > FEW else 0.0
        return found

    def _found(
        self, often: Iterable[ObjectName], now: datetime
    ) -> Iterator[tuple[ObjectName, Flapping]]:
        for key in often:
            tracked = self._store.get(key)
            if tracked is not None and (how := flapping_of(self._activity, tracked, now)):
                yield key, how


def _most_changes(one: tuple[ObjectName, Flapping]) -> tuple[int, ObjectName]:
    return -one[1].changes, one[0]


logger = logging.getLogger(__name__)

# Told the name of the part that failed, and why; the part is tried again.
Failed = Callable[[str, Exception], None]


def log_failure(part: str, error: Exception) -> None:
    """For a channel that nobody supervises."""
    logger.error("The part %s of open pages failed on an unexpected error", part, exc_info=error)


KEPT_CHANGES = 50


class ClusterFeed:
    """The newest changes and incidents of one cluster, and what is wrong with showing them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.activity = Activity(store.abandoned_after)
        self.flappers = FlappingLeases(store, self.activity)
        self.nodes = NodeBook()
        self.drawn: dict[str, Any] = {}  # its last row and drawings, for whoever shows all clusters
        self.labels: Mapping[str, str] = {}  # of the cluster, as the settings have them
        self.server_version = ""  # as the API server told it when the watch began; "": not known
        # Numbers grow over a restart, so that a reader who comes back sees a gap and refetches. In
        # microseconds they do not meet those of another replica, to which a reader may come back.
        self.seq = self.first_seq = int(time.time() * 1_000_000)
        self.moves = MoveLog()
        self.recent: Recent = deque(maxlen=KEPT_CHANGES)
        self.explainable = ExplainableChanges()
        # Changes whose cause became known, with the turn of incidents in which it did.
        self.explained: Recent = deque(maxlen=KEPT_CHANGES)
        self.incident_turn = 0  # grows when an incident begins, changes or ends
        self.events_per_second = 0.0
        # Seconds by which the wall clock was set since the start: after no jump, after one, …
        self.clock_moves = [0.0]
        self.failed: Failed = log_failure
        self.going_on: Callable[[], Sequence[Incident]] = lambda: ()  # incidents, oldest first
        self.unwritten: Callable[[], int] = lambda: 0  # changes that history does not have yet
        # The problem of history, in a sentence.
        self.problem: Callable[[], str | None] = lambda: None
        # The changes that history refused lately.
        self.refused: Callable[[datetime], Sequence[RefusedValue]] = lambda _: ()
        self.failing_receivers: Callable[[], Sequence[FailingReceiver]] = lambda: ()
        self.care: Callable[[], Care] = Care
        # Told of each change, incident and change of the connection; with True, of some that come
        # in no frame.
        self.told: Callable[[bool], None] = lambda _: None

    @property
    def readers(self) -> Mapping[str, int]:
        """How many open pages and programs read it now."""
        return {"page": 0, "feed": 0}

    def newest(self) -> tuple[int, list[tuple[int, Change]]]:
        """The number that the feed has reached, and the newest changes up to it with theirs, oldest
        first. For any thread: to copy a deque runs no Python code, so nobody changes it meanwhile.
        """
        while True:
            seq, recent = self.seq, list(self.recent)
            sent = [one for one in recent if one[0] <= seq]
            if sent or not recent:  # else more came between the two looks than are kept
                return seq, sent

    def settled_seq(self) -> int:
        """The number up to which history surely has the changes. Ask before history is read: a
        repeat is harmless, a gap is not.
        """
        reached, lacking = self._lacking()
        return lacking[0][0] - 1 if lacking else reached

    def lacking_since(self) -> datetime | None:
        """When the oldest of the newest changes was observed that history may lack."""
        if not self.unwritten():
            return None  # a page of a thousand clusters asks each
        _, lacking = self._lacking()
        return lacking[0][1].observed_at if lacking else None

    def _lacking(self) -> tuple[int, list[tuple[int, Change]]]:
        reached, sent = self.newest()
        waiting = self.unwritten()  # asked later: what came meanwhile counts as one of these
        return reached, sent[-waiting:] if waiting else []

    def newest_first(self) -> tuple[int, list[Change]]:
        """The newest changes, newest first, and the number of the last: what a page begins with."""
        seq, sent = self.newest()
        return seq, [change for _, change in reversed(sent)]
