"""An episode: the changes of one Lease from the one that shook it until somebody holds it again."""

from __future__ import annotations

from datetime import datetime, timedelta

from leases.domain.cause.clue import Clue
from leases.domain.cause.contender import Contender, contender
from leases.domain.cause.foreign_writer import foreign_writer
from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind

_GAPS = frozenset({ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.DELETED})
_OPENING = _GAPS | {ChangeType.REPLACED, ChangeType.TAKEN_OVER, ChangeType.RESTARTED}
# A contender may count on a shorter duration than the Lease has: that replaces a silent holder.
_AFTER_SILENCE = frozenset({ChangeType.EXPIRED, ChangeType.RESTARTED, ChangeType.REPLACED})
FOLLOWS = timedelta(seconds=60)  # an edit is taken back, a preferred holder takes over
RENEWED = timedelta(milliseconds=500)


class Episode:
    """One Lease, and what happened to it. `open`: nobody holds it yet."""

    def __init__(self, clue: Clue) -> None:
        self.key = clue.key
        self.clues = [clue]
        self.open = clue.change.change in _GAPS
        self._begin()

    def begin_with(self, birth: Clue) -> None:
        """Let an earlier change begin it."""
        self.clues.insert(0, birth)
        self._begin()

    def _begin(self) -> None:
        """Read the first change once: the rules look at it again and again."""
        self.first = first = self.clues[0]
        change = first.change
        self.opening = change.change
        self.at = change.at
        self.kind = change.kind
        # Who held it before.
        it_goes_on = change.change in (ChangeType.RESTARTED, ChangeType.RECONFIGURED)
        self.loser = contender(change.holder if it_goes_on else change.previous_holder)
        before = None if first.before is None else first.before.spec.lease_duration_seconds
        self.duration = float(before or 15)
        # Seconds between the renewals of the holder, or a good guess.
        shortest = min(first.renew_intervals, default=None)
        guess = max(1.0, self.duration / 3)
        self.rhythm = guess if shortest is None else max(0.1, shortest)
        self.lost_at = self._lost_at()

    def _lost_at(self) -> datetime:
        """Return when the holder was last seen alive."""
        first = self.first
        if first.observed_at is None or self.opening not in _AFTER_SILENCE:
            return self.at
        silent = (self.at - first.observed_at).total_seconds()
        if self.opening is ChangeType.REPLACED and silent <= 1.5 * self.rhythm + 1.0:
            return self.at
        return first.observed_at

    @property
    def last(self) -> Clue:
        return self.clues[-1]

    @property
    def ended_at(self) -> datetime | None:
        """When it was over: nobody is without a Lease that was deleted."""
        over = not self.open or self.last.change.change is ChangeType.DELETED
        return self.last.change.at if over else None

    @property
    def winner(self) -> Contender | None:
        """Who holds it now, if anybody."""
        return None if self.open else contender(self.last.change.holder)

    @property
    def gap_seconds(self) -> float | None:
        return max((one.change.gap_seconds or 0.0 for one in self.clues), default=0.0) or None

    def happened(self, *types: ChangeType) -> bool:
        return any(clue.change.change in types for clue in self.clues)

    def takes(self, clue: Clue) -> bool:
        """Whether a later change of the Lease belongs to this."""
        change = clue.change.change
        if change is ChangeType.RECONFIGURED:
            return self._reverts(clue)
        if self.open:
            return True
        if self.opening is ChangeType.RECONFIGURED:
            return self._prefers() and clue.change.at - self.at <= FOLLOWS
        return self._ends_theft(clue)

    def add(self, clue: Clue) -> None:
        self.clues.append(clue)
        change = clue.change.change
        if change is not ChangeType.RECONFIGURED:
            self.open = change in _GAPS

    def _prefers(self) -> bool:
        return "preferredHolder" in self.first.change.fields

    def _reverts(self, clue: Clue) -> bool:
        """Whether a holder puts its own configuration back, or the coordinator its choice."""
        return (
            self.opening is ChangeType.RECONFIGURED
            and clue.change.at - self.at <= FOLLOWS
            and bool(set(clue.change.fields) & set(self.first.change.fields))
            and (clue.change.writer != self.first.change.writer or self._prefers())
        )

    def _ends_theft(self, clue: Clue) -> bool:
        """Whether somebody loses it who was put there and never renewed."""
        thief = self.last.change
        put = self.opening in (ChangeType.REPLACED, ChangeType.TAKEN_OVER) or self.happened(
            ChangeType.ACQUIRED
        )
        if not put or clue.change.previous_holder != thief.holder or clue.observed_at is None:
            return False
        by_hand = foreign_writer(self.last) is not None
        never_renewed = clue.observed_at - thief.at <= RENEWED
        return by_hand and never_renewed


def opens(clue: Clue) -> bool:
    """Whether a change starts an episode, if no other one takes it."""
    change = clue.change
    if change.change is ChangeType.RELEASED and change.kind is Kind.LOCK:
        return foreign_writer(clue) is not None  # a lock is there to be given back
    if change.change in _OPENING:
        return True
    if change.change is ChangeType.RECONFIGURED:
        return "preferredHolder" in change.fields or foreign_writer(clue) is not None
    return change.change is ChangeType.ACQUIRED and foreign_writer(clue) is not None
