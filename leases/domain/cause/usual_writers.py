"""Who writes each Lease usually: to distinguish a person's write from a holder's own."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from leases.domain.cause.clue import Clue
from leases.domain.cause.foreign_writer import foreign_writer
from leases.domain.cause.human_writers import is_human_writer
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

MAX_REMEMBERED = 20_000

V = TypeVar("V")


class UsualWriters:
    def __init__(self) -> None:
        self._writers: dict[ObjectName, str] = {}

    def note(self, clue: Clue) -> Clue:
        """Return the clue with the usual writer of its Lease, and remember who wrote it now."""
        change, key = clue.change, clue.key
        usual = self._writers.get(key)
        if usual is not None:
            clue = msgspec.structs.replace(clue, usual_writer=usual)
        writer = change.writer
        if (
            writer is not None
            and change.change is not ChangeType.RECONFIGURED
            and change.kind is not Kind.HEARTBEAT
            and not is_human_writer(writer)
            and foreign_writer(clue) is None
        ):
            remember(self._writers, key, writer)
        return clue


def remember(known: dict[ObjectName, V], key: ObjectName, value: V) -> None:
    """Set a value; the one that was set longest ago makes room."""
    known.pop(key, None)
    if len(known) >= MAX_REMEMBERED:
        del known[next(iter(known))]
    known[key] = value
