"""Find writes that were not the holder's own, by the field manager and by what they moved."""

from __future__ import annotations

from leases.domain.cause.clue import Clue
from leases.domain.cause.contender import contender
from leases.domain.cause.human_writers import is_human_writer
from leases.domain.changes.change import ChangeType
from leases.domain.changes.field_managers import owner_of

_TERM = frozenset(
    {ChangeType.ACQUIRED, ChangeType.RELEASED, ChangeType.REPLACED, ChangeType.TAKEN_OVER}
)


def foreign_writer(clue: Clue) -> str | None:
    """Return the field manager of a write that was not the holder's own; None: it was, or no
    write caused the change.
    """
    change, after = clue.change, clue.after
    writer = change.writer
    if writer is None or after is None or change.change is ChangeType.CREATED:
        return None
    usual = usual_writer(clue)
    if is_human_writer(writer):
        return None if usual == writer else writer
    if change.change not in _TERM or usual in (None, writer):
        return None
    return writer if _is_odd(clue) else None


def _is_odd(clue: Clue) -> bool:
    """Whether no elector writes like this: the times stay, somebody else releases, or a valid
    holder is replaced by what is no Pod of its workload.
    """
    change = clue.change
    if not _moved_times(clue):
        return True
    if change.change is ChangeType.RELEASED:
        return clue.usual_writer is not None
    before, after = contender(change.previous_holder), contender(change.holder)
    if change.change is not ChangeType.REPLACED or before is None or after is None:
        return False
    return before.workload != after.workload and _was_in_time(clue)


def _was_in_time(clue: Clue) -> bool:
    """Whether the holder had renewed at its usual rhythm."""
    usual = clue.cadence_seconds
    if usual is None or clue.observed_at is None:
        return False
    return (clue.change.at - clue.observed_at).total_seconds() <= 1.5 * usual + 1.0


def usual_writer(clue: Clue) -> str | None:
    """Return the manager that renews the Lease, as far as its managedFields still show."""
    if clue.usual_writer:
        return clue.usual_writer
    renews = owner_of("spec.renewTime", clue.managers)
    if renews is not None and renews != clue.change.writer:
        return renews
    others = [one.name for one in clue.managers if one.name != clue.change.writer]
    if any(not is_human_writer(name) for name in others):
        return next(name for name in others if not is_human_writer(name))
    return None if others else renews


def _moved_times(clue: Clue) -> bool:
    before, after = clue.before, clue.after
    if before is None or after is None:
        return True
    return (before.spec.renew_time, before.spec.acquire_time) != (
        after.spec.renew_time,
        after.spec.acquire_time,
    )
