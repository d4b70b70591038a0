"""What is counted while a cluster is watched: events, changes, and the time without a holder."""

from collections import Counter, deque
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


class ElectionCounters(msgspec.Struct, gc=False):
    holder_changes: int = 0
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
            if change.kind is Kind.ELECTION:
                self._count_election(change)
        for key in update.removed:
            self.elections.pop(key, None)

    def election(self, tracked: Tracked, now: datetime) -> tuple[int, float]:
        """Return how often the holder changed, and the seconds in which nobody held it."""
        counters = self.elections.get(tracked.key) or ElectionCounters()
        gap = open_gap(tracked)
        still = 0.0 if gap is None else self._unheld(gap, now)
        return counters.holder_changes, counters.unheld_seconds + still

    def clock_jumped(self, jump: Jump) -> None:
        by = jump.by
        self._gaps.clock_jumped(by)
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

    def _count_election(self, change: Change) -> None:
        key = ObjectName(change.namespace, change.name)
        counters = self.elections.setdefault(key, ElectionCounters())
        if change.change in HOLDER_CHANGES and is_watched(change.at, self._unwatched()):
            counters.holder_changes += 1
        for ended in self._gaps.follow(change):
            counters.unheld_seconds += self._unheld(ended, change.at)
