"""The rows of one cluster, indexed by name, in name order, and by phase. Each step updates them.

Only the event loop writes; any thread may read.
"""

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from typing import TypeVar

from leases.domain.kind import Kind
from leases.domain.lease import ObjectName, is_number, number_of
from leases.domain.phase import Phase
from leases.domain.split_dict import SplitDict
from leases.domain.steady_clock import Jump, moved
from leases.tracking.deadlines import UNKNOWN, Alarm, RenewalOutlook
from leases.tracking.tracked_lease import Tracked

T = TypeVar("T")
_name, _namespace = attrgetter("key"), attrgetter("key.namespace")  # of a row

BETWEEN_READS = 0.0001  # seconds
MAX_READ_SECONDS = 1.0  # seconds; then accept a read that may miss the row being moved
SEVERAL = 100  # from this many rows on, sort them together
SORTED_APART = 0.05  # up to this share of all rows, sorting again is cheaper than scanning in order


class Row(Alarm, kw_only=True, gc=False):
    """One Lease with its alarm. Only the store changes it."""

    tracked: Tracked
    version: int  # of the newest write known
    changed_at: datetime  # when its newest change happened
    remembered: bool = False  # read from the checkpoint, and not observed since
    listing: int = 0  # the number of the last list that had it
    # Of its plain renewals, see leases.wire.renewal_lines; 0 before the first
    fingerprint: int = 0
    outlook: RenewalOutlook = UNKNOWN

    @property
    def newest(self) -> datetime:
        """Any later write happened after this."""
        return max(self.changed_at, self.tracked.observed_at)


class LeaseIndex:
    def __init__(self) -> None:
        self._by_name: SplitDict[Row] = SplitDict()
        self._in_order: list[Row] = []
        self._counts = {kind: dict.fromkeys(Phase, 0) for kind in Kind}
        # Every phase but held heartbeats, which are nearly all Leases, and which no page looks for.
        self._few: dict[tuple[Kind, Phase], dict[ObjectName, Row]] = {
            (kind, phase): {}
            for kind in Kind
            for phase in Phase
            if (kind, phase) != (Kind.HEARTBEAT, Phase.HELD)
        }
        # Leases that nobody holds, and that are no trouble: see Tracked.excused.
        self._excused: dict[ObjectName, Row] = {}
        self.by_fingerprint: dict[int, Row] = {}
        self._moves = 0  # incremented before and after each move of a row: odd while one moves
        self.get = self._by_name.get

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._by_name)

    def add(self, *rows: Row) -> None:
        """Add rows whose names are new."""
        with self._moving():
            for row in rows:
                self._by_name[row.key] = row
                self._count(row, row.tracked, 1)
        ordered, new = self._in_order, sorted(rows, key=_name)
        if not new:
            return
        first = bisect_left(ordered, new[0].key, key=_name)
        # The usual case: a page of a list.
        if first == len(ordered) or new[-1].key < ordered[first].key:
            ordered[first:first] = new
        elif len(new) < SEVERAL:
            for row in new:
                insort(ordered, row, key=_name)
        else:
            self._in_order = sorted((*ordered, *new), key=_name)

    def remove(self, *rows: Row) -> None:
        with self._moving():
            for row in rows:
                self._by_name.pop(row.key)
                self.set_fingerprint(row, 0)
                self._count(row, row.tracked, -1)
        if len(rows) < SEVERAL:
            for row in rows:
                del self._in_order[bisect_left(self._in_order, row.key, key=_name)]
        else:
            get = self.get
            self._in_order = [row for row in self._in_order if get(row.key) is row]

    def put(self, row: Row, tracked: Tracked) -> None:
        before = row.tracked
        if before.lasting.lease is not tracked.lasting.lease:
            self.set_fingerprint(row, 0)
        if _place(before) != _place(tracked):
            with self._moving():
                self._count(row, before, -1)
                self._count(row, tracked, 1)
                row.tracked = tracked
        row.tracked = tracked

    def set_fingerprint(self, row: Row, fingerprint: int) -> None:
        """Recognise the next renewals of a row by this fingerprint; 0: by none."""
        if row.fingerprint != fingerprint:
            self.by_fingerprint.pop(row.fingerprint, None)
            row.fingerprint = fingerprint
            if fingerprint:
                self.by_fingerprint[fingerprint] = row

    def after(self, key: ObjectName | None, most: int) -> list[Row]:
        first = 0 if key is None else bisect_right(self._in_order, key, key=_name)
        return self._in_order[first : first + most]

    def around(self, first: ObjectName, last: ObjectName) -> list[ObjectName]:
        """Return the name just before `first` and the name just after `last`, if any."""
        ordered = self._in_order
        before = bisect_left(ordered, first, key=_name)
        after = bisect_right(ordered, last, key=_name)
        rows = (*ordered[max(0, before - 1) : before], *ordered[after : after + 1])
        return [row.key for row in rows]

    def snapshot(self) -> tuple[Tracked, ...]:
        """Return all states in name order."""
        rows = tuple(self._in_order)  # atomic, so that the writer may go on
        return tuple([row.tracked for row in rows])

    def select(self, kinds: Collection[Kind], phases: Collection[Phase]) -> Iterator[Tracked]:
        """Yield the states of these kinds and phases in name order.

        Lazy: a page of many costs little.
        """
        number = sum(self._counts[kind][phase] for kind in kinds for phase in phases)
        piles = [self._few.get((kind, phase)) for kind in kinds for phase in phases]
        if None in piles or number > SORTED_APART * len(self._in_order):
            kinds, phases = tuple(kinds), tuple(phases)
            for row in tuple(self._in_order):
                tracked = row.tracked
                if tracked.lasting.phase in phases and tracked.lasting.kind in kinds:
                    yield tracked
            return
        yield from sorted(self._of_piles(piles), key=_name)

    def in_any_order(self, kinds: Collection[Kind], phases: Collection[Phase]) -> Sequence[Tracked]:
        """Return the states of these kinds and phases: cheap, but for held heartbeats."""
        piles = [self._few.get((kind, phase)) for kind in kinds for phase in phases]
        if None not in piles:
            return self._of_piles(piles)
        return [
            one
            for one in self.snapshot()
            if one.lasting.phase in phases and one.lasting.kind in kinds
        ]

    def _of_piles(self, piles: Sequence[dict[ObjectName, Row] | None]) -> list[Tracked]:
        return self._at_once(
            lambda: [row.tracked for pile in piles if pile for row in list(pile.values())]
        )

    def excused(self) -> list[Tracked]:
        """Return the states that are excused, in name order."""
        rows = self._at_once(lambda: list(self._excused.values()))
        return sorted((row.tracked for row in rows), key=_name)

    def of_namespace(self, namespace: str) -> tuple[Tracked, ...]:
        """Return the states of one namespace in name order."""
        rows = tuple(self._in_order)
        first = bisect_left(rows, namespace, key=_namespace)
        last = bisect_right(rows, namespace, lo=first, key=_namespace)
        return tuple([row.tracked for row in rows[first:last]])

    def namespaces(self) -> list[str]:
        """Return every namespace. Rows are in name order, so it jumps from one to the next."""
        rows = tuple(self._in_order)
        found: list[str] = []
        at = 0
        while at < len(rows):
            found.append(rows[at].key.namespace)
            at = bisect_right(rows, found[-1], lo=at, key=_namespace)
        return found

    def _count(self, row: Row, state: Tracked, by: int) -> None:
        """Add (1) or remove (-1) a row in the index of its phase."""
        self._counts[state.kind][state.phase] += by
        pile = self._few.get((state.kind, state.phase))
        if pile is not None and by > 0:
            pile[row.key] = row
        elif pile is not None:
            del pile[row.key]
        if state.excused:
            if by > 0:
                self._excused[row.key] = row
            else:
                del self._excused[row.key]

    def counts(self) -> dict[Kind, dict[Phase, int]]:
        """Count the Leases by kind and phase, each once even while rows move."""
        return self._at_once(lambda: {kind: dict(phases) for kind, phases in self._counts.items()})

    def elections(self) -> int:
        return sum(self._counts.get(Kind.ELECTION, {}).values())

    @contextmanager
    def _moving(self) -> Iterator[None]:
        self._moves += 1
        try:
            yield
        finally:
            self._moves += 1

    def _at_once(self, read: Callable[[], T]) -> T:
        """Return the result of a read during which no row moved."""
        until: float | None = None
        while True:
            moves, found = self._moves, read()
            if moves == self._moves and not moves % 2:
                return found
            now = time.monotonic()
            until = now + MAX_READ_SECONDS if until is None else until
            if now > until:
                return found
            time.sleep(BETWEEN_READS)  # let the writer finish its move


def _place(state: Tracked) -> tuple[Kind, Phase, bool]:
    return state.kind, state.phase, state.excused


def version_after(resource_version: str, last: int) -> int:
    """Parse a resourceVersion, which grows over the whole server; treat any other text as new."""
    return number_of(resource_version) if is_number(resource_version) else last + 1


class CheckpointRotation:
    """Visits the Leases of one cluster in name order, again and again."""

    def __init__(self, rows: LeaseIndex) -> None:
        self._rows = rows
        self._last: ObjectName | None = None
        self._began = self._before = datetime.fromtimestamp(0, UTC)

    def clock_jumped(self, jump: Jump) -> None:
        """Move the times that are compared with observations, which moved as well."""
        self._before, self._began = moved(self._before, jump.by), moved(self._began, jump.by)

    def next(self, most: int, now: datetime) -> list[ObjectName]:
        """Return those of the next `most` Leases that were renewed since the last round began."""
        rows = self._rows.after(self._last, most)
        renewed = [row.key for row in rows if row.tracked.observed_at >= self._before]
        if len(rows) == most:
            self._last = rows[-1].key
        else:
            self._last, self._before, self._began = None, self._began, now
        return renewed
