"""Tell a page what moved between its drawing and the opening of its socket.

A page carries the stamp of its drawing: the number of the last move, and the moment. The process
that drew the page goes by the number. Replicas count apart from each other, so another process goes
by the moment.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection

import msgspec

from dashboard import clock
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
