"""What the feed of one cluster remembers for pages drawn before: moves, and later causes.

A page carries the stamp of its drawing: the number of the last move, and the moment. The process
that drew the page goes by the number. Replicas count apart from each other, so another process goes
by the moment.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence

import msgspec

from dashboard import clock
from leases.domain.cause.incident import Cause, Incident
from leases.domain.change import Change, identity
from leases.domain.lease import ObjectName

KEPT = 256
MAX_NAMED = 50  # Leases of one move; more of them may concern any list
LAG = 1.0  # seconds that one replica may be behind another


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Leases that look different, appeared or went, or incidents that began, changed or ended."""

    number: int
    at: float
    seq: int  # the number of the feed before it
    turn: int  # the turn of incidents before it
    keys: Collection[ObjectName] | None  # None: too many to name
    created: Collection[ObjectName]
    incidents: bool


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
        move = Move(
            number=self.number + 1,
            at=clock.now().timestamp(),
            seq=seq,
            turn=turn,
            keys=keys if len(keys) <= MAX_NAMED else None,
            created=created,
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

    def seq_at(self, stamp: str, seq: int) -> int:
        """The feed's number when another process drew a page; `seq` is the present one."""
        _, moment = _read(stamp)
        return next((move.seq for move in self._kept if move.at > moment - LAG), seq)


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
            for one in incident.members:
                change = self._kept.get((one.lease, one.identity))
                if change is None:
                    continue
                known = msgspec.structs.replace(change, cause=incident.cause, incident=incident.id)
                given_up = incident.settled and incident.cause is Cause.UNKNOWN
                if known != change or given_up:  # then nobody looks for the cause any more
                    self._kept[one.lease, one.identity] = found[one.lease, one.identity] = known
        for place, (seq, change) in enumerate(recent if found else ()):
            recent[place] = (seq, found.get(_member(change), change))
        return sorted(found.values(), key=lambda change: change.at)

    def with_cause(self, change: Change) -> Change:
        """The change of history with the cause that is known here. For any thread."""
        known = self._kept.get(_member(change))
        if known is None or known.incident is None:
            return change
        return msgspec.structs.replace(change, cause=known.cause, incident=known.incident)


def _member(change: Change) -> tuple[ObjectName, str]:
    """What an incident calls a change."""
    return ObjectName(change.namespace, change.name), identity(change)
