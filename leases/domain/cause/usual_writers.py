"""Who wrote each Lease last, as the casebook remembers it."""

from typing import TypeVar

import msgspec

from leases.domain.cause.clue import (
    OFTEN,
    RENEWED,
    Clue,
    DurationEdit,
    Put,
    foreign_writer,
    is_human_writer,
    is_of_a_person,
)
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName

MAX_REMEMBERED = 20_000

V = TypeVar("V")


_HOLDS = frozenset(
    {
        ChangeType.CREATED, ChangeType.ACQUIRED, ChangeType.TAKEN_OVER, ChangeType.REPLACED,
        ChangeType.RESTARTED, ChangeType.RECOVERED,
    }
)  # fmt: skip


_ENDS_UNRENEWED = frozenset(
    {ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.TAKEN_OVER, ChangeType.REPLACED}
)


class UsualWriters:
    """Who wrote each Lease last: whoever renews it, a person, or an edit of its duration."""

    def __init__(self) -> None:
        self._writers: dict[ObjectName, str] = {}
        self._put: dict[ObjectName, Put] = {}
        self._edited: dict[ObjectName, DurationEdit] = {}

    def note(self, clue: Clue) -> Clue:
        """Return the clue with the usual writer of its Lease, and remember who wrote it now."""
        change, key = clue.change, clue.key
        usual = self._writers.get(key)
        if usual is not None:
            clue = msgspec.structs.replace(clue, usual_writer=usual)
        clue = self._of_persons(clue)
        foreign = foreign_writer(clue)
        if foreign is not None and is_human_writer(foreign) and not change.inferred:
            clue = msgspec.structs.replace(clue, by_person=True)
        writer = change.writer
        if (
            writer is not None
            and change.change is not ChangeType.RECONFIGURED
            and change.kind is not Kind.HEARTBEAT
            and not is_human_writer(writer)
            and foreign is None
        ):
            remember(self._writers, key, writer)
        return clue

    def _of_persons(self, clue: Clue) -> Clue:
        """Tell a person's write from a renewal: neither a holder put there nor an edit is one."""
        change, key, at = clue.change, clue.key, clue.observed_at
        put, edited = self._put.get(key), self._edited.get(key)
        if put is not None and change.change in _ENDS_UNRENEWED:
            same = put.holder in (change.previous_holder, change.holder)
            if same and (at is None or at - put.at <= RENEWED or not clue.renewals_seen):
                clue = msgspec.structs.replace(clue, put=put)
        if edited is not None and at is not None and at - edited.at <= RENEWED:
            clue = msgspec.structs.replace(clue, edit=edited)
        if change.change is ChangeType.RECONFIGURED:
            if "leaseDurationSeconds" in change.fields and at is not None:
                renewal = at if clue.edit is None else clue.edit.renewal
                lasts = [
                    None if one is None else one.spec.lease_duration_seconds
                    for one in (clue.before, clue.after)
                ]
                edit = DurationEdit(change.writer or "", change.at, renewal, *lasts)
                remember(self._edited, key, edit)
        elif change.change is not ChangeType.EXPIRED:
            self._edited.pop(key, None)
        if change.change in _HOLDS:
            self._put.pop(key, None)
            if clue.renewals_seen < OFTEN or foreign_writer(clue) is not None:
                self.recall(change)
        return clue

    def recall(self, change: Change) -> None:
        """Remember it where a person wrote a holder, now or before the last start."""
        writer, holder = change.writer or "", change.holder
        edited = change.change is ChangeType.RECOVERED and change.fields
        if edited or not holder or change.change not in _HOLDS:
            return
        if not change.inferred and is_of_a_person(writer):
            key = ObjectName(change.namespace, change.name)
            remember(self._put, key, Put(writer, holder, change.at, change.change))


def remember(known: dict[ObjectName, V], key: ObjectName, value: V) -> None:
    """Set a value; the one that was set longest ago makes room."""
    known.pop(key, None)
    if len(known) >= MAX_REMEMBERED:
        del known[next(iter(known))]
    known[key] = value
