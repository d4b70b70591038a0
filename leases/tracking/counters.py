"""What is counted while a cluster is watched: events, changes, and the time without a holder.

The counters of an election are those of its name: they go on when it is deleted and made anew. Once
it is gone for FORGOTTEN_AFTER, or before that if MAX_GONE others went later, they are forgotten.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Container
from datetime import datetime, timedelta

import msgspec

from leases.domain.change import HOLDER_CHANGES, Change, ChangeType
from leases.domain.figures import DEFAULT_ABANDONED_AFTER, Span, is_watched, unheld_seconds
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import EARLIEST, LATEST, Jump, moved
from leases.domain.terms import GapFollower, LeaseGap
from leases.domain.watched_times import Connection, ConnectionState, Missing
from leases.tracking.observation import open_gap
from leases.tracking.tracked_lease import Tracked, Update

FORGOTTEN_AFTER = timedelta(days=1)  # since an election was deleted
MAX_GONE = 10_000  # deleted elections that are remembered


class ElectionCounters(msgspec.Struct, gc=False):
    holder_changes: int = 0
    handovers: int = 0
    unheld_seconds: float = 0.0  # of the gaps that have ended


MAX_BLIND = 200  # times without a watch that are remembered; a gap seldom lies across so many


class Counters:
    """Counts events as they arrive, and changes as they are emitted."""

    def __init__(self, abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER) -> None:
        self.events = 0
        self.bookmarks = 0
        self.lists: Counter[str] = Counter()  # by the reason for the list
        self.breaks = 0
        self.not_understood = 0
        self.near_misses = 0
        self.incidents: Counter[Cause] = Counter()  # settled ones; counted by who settles them
        self.changes: Counter[tuple[Kind, ChangeType]] = Counter()
        self.elections: dict[ObjectName, ElectionCounters] = {}
        self.may_be_vacant: Container[ObjectName] = ()  # as admins say now
        self._abandoned_after = abandoned_after
        self._gaps = GapFollower()
        self._gone = OrderedDict[ObjectName, datetime]()  # since when, the oldest first
        self._blind: deque[Span] = deque(maxlen=MAX_BLIND)
        self._blind_since: datetime | None = EARLIEST  # None while the watch is live

    def count(self, update: Update) -> None:
        self.not_understood += len(update.skipped)
        self.near_misses += len(update.late)
        if update.connection is not None:
            self._watch(update.connection)
        missed = update.missed
        if missed is not None and missed.why is Missing.STOOD_STILL:
            self._blind.append((missed.since or EARLIEST, missed.until))
        for change in update.changes:
            self.changes[change.kind, change.change] += 1
            key = ObjectName(change.namespace, change.name)
            # What was an election counts as one, whatever is thought of it when it is made anew.
            if change.kind is Kind.ELECTION or key in self.elections:
                self._count_election(key, change)
        for key in update.removed:
            if key in self.elections:
                self._gone[key] = update.now
        if update.changes:
            self._forget(update.now)

    def election(self, tracked: Tracked, now: datetime) -> ElectionCounters:
        """Return what is counted of an election, with the gap that goes on."""
        counters = self.elections.get(tracked.key) or ElectionCounters()
        gap = open_gap(tracked)
        if gap is None:
            return counters
        still = counters.unheld_seconds + self._unheld(gap, now)
        return msgspec.structs.replace(counters, unheld_seconds=still)

    def clock_jumped(self, jump: Jump) -> None:
        by = jump.by
        self._gaps.clock_jumped(by)
        self._gone = OrderedDict((key, moved(at, by)) for key, at in self._gone.items())
        self._blind = deque(((moved(a, by), moved(b, by)) for a, b in self._blind), MAX_BLIND)
        self._blind_since = moved(self._blind_since, by)

    def _watch(self, connection: Connection) -> None:
        """Note since when nobody watches, or until when."""
        if connection.state is not ConnectionState.LIVE:
            if self._blind_since is None:
                self._blind_since = connection.heard_at or connection.since
        elif self._blind_since is not None:
            self._blind.append((self._blind_since, connection.since))
            self._blind_since = None

    def _unwatched(self) -> list[Span]:
        goes_on = [] if self._blind_since is None else [(self._blind_since, LATEST)]
        return [*self._blind, *goes_on]

    def _unheld(self, one: LeaseGap, until: datetime) -> float:
        marked = one.key in self.may_be_vacant
        return unheld_seconds(
            one.gap,
            Kind.ELECTION,
            (EARLIEST, until),
            self._unwatched(),
            held_since=one.held_since,
            may_be_vacant=[(EARLIEST, LATEST)] if marked else (),
            abandoned_after=self._abandoned_after,
        )

    def _count_election(self, key: ObjectName, change: Change) -> None:
        self._gone.pop(key, None)
        counters, step = self.elections.setdefault(key, ElectionCounters()), self._gaps.step(change)
        came = change.change in HOLDER_CHANGES
        if (came or step.handover) and is_watched(change.at, self._unwatched()):
            counters.holder_changes += came
            counters.handovers += step.handover
        for ended in step.gaps:
            counters.unheld_seconds += self._unheld(ended, change.at)

    def _forget(self, now: datetime) -> None:
        """Drop the elections that were deleted for good."""
        while self._gone:
            key, at = next(iter(self._gone.items()))
            if len(self._gone) <= MAX_GONE and now - at < FORGOTTEN_AFTER:
                return
            del self._gone[key], self.elections[key]
            self._gaps.drop(key)
