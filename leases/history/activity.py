"""The last day of one cluster, kept in memory: changes per hour, flapping, watched times.

It starts from history and continues with the tracker's updates. A Lease that existed before we
started is no activity.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import itemgetter
from struct import Struct

import msgspec
from django.db.models import QuerySet
from msgspec.structs import replace

from leases import models
from leases.domain.change import Change, ChangeType
from leases.domain.figures import (
    DEFAULT_ABANDONED_AFTER,
    Held,
    Span,
    held,
    is_watched,
    unheld_seconds,
)
from leases.domain.flapping import FEWEST, RULES, BriefChange
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import EARLIEST, LATEST, Jump, moved, plus
from leases.domain.terms import GapFollower, LeaseGap, moved_change
from leases.domain.watched_times import (
    BRIEF,
    Connection,
    ConnectionState,
    UnwatchedTime,
    WatchedTime,
    unwatched,
    within,
)
from leases.history.database import from_stored
from leases.history.overrides import marks_between
from leases.history.rows import FIELDS, stored_change, stored_kind, to_change
from leases.history.states_as_of import changes_before
from leases.history.watched_spans import AROUND, pauses, spans_around

HOUR = timedelta(hours=1)
JUDGED = max(rule.within for rule in RULES.values())  # what is older is only counted
MAX_OF_LEASE = 2000  # changes that are kept of one Lease
MAX_KEPT = 50_000  # changes that are kept of all Leases of a group of kinds
TURNS = 16  # changes back to which a holder is looked for
# They all expire when a network fails. That must not displace what is known of elections.
_ONE_HOLDER = (Kind.HEARTBEAT, Kind.IDENTITY)


class LastHour:
    """Only the event loop writes; any thread may read. Each addition increments `version`."""

    def __init__(self) -> None:
        self.version = 0
        self._groups = (_Group(), _Group())

    def add(self, key: ObjectName, kind: Kind, change: BriefChange, now: datetime) -> None:
        self._groups[kind in _ONE_HOLDER].add(key, change, now)
        self.version += 1

    def of(self, key: ObjectName) -> tuple[BriefChange, ...]:
        """Return the changes of a Lease that the rules of flapping read, newest last."""
        few, many = (group.of(key) for group in self._groups)
        return few + many  # both only after a change of kind

    def often(self) -> list[ObjectName]:
        """Return the Leases with enough changes for one of the rules of flapping."""
        return [key for group in self._groups for key in group.often()]

    def totals(self, since: datetime) -> dict[ObjectName, int]:
        """Return the number of changes since then for each Lease that had any."""
        sums: dict[ObjectName, int] = {}
        for group in self._groups:
            for key, number in group.totals(since):
                sums[key] = sums.get(key, 0) + number
        return sums

    def forget(self, now: datetime) -> None:
        """Drop the Leases whose last change is an hour old."""
        for group in self._groups:
            group.forget(now)

    def clock_jumped(self, jump: Jump) -> None:
        for group in self._groups:
            group.move(jump.by)


_NONE = array("d")


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[BriefChange, ...]).decode


def _read(kept: bytes | tuple[BriefChange, ...]) -> tuple[BriefChange, ...]:
    return _unpack(kept) if isinstance(kept, bytes) else kept


class _Group:
    """The changes of some kinds. A Lease's changes are replaced whole; few are packed, as those of
    most Leases: then a change takes half the memory.
    """

    def __init__(self) -> None:
        # The Lease that changed last comes last. A dict looks for its first through all that left.
        self._changes: OrderedDict[ObjectName, bytes | tuple[BriefChange, ...]] = OrderedDict()
        self._older: dict[ObjectName, array[float]] = {}  # seconds since 1970, replaced whole
        self._often: dict[ObjectName, None] = {}
        self._kept = 0

    def of(self, key: ObjectName) -> tuple[BriefChange, ...]:
        return _read(self._changes.get(key, ()))

    def often(self) -> list[ObjectName]:
        return list(self._often)

    def totals(self, since: datetime) -> Iterator[tuple[ObjectName, int]]:
        """Yield the number of changes since then of each Lease that had any."""
        older, seconds = self._older.copy(), since.timestamp()
        for key, kept in self._changes.copy().items():
            number = sum(change.at >= since for change in _read(kept))
            number += sum(at >= seconds for at in older.get(key, ()))
            if number:
                yield key, number

    def add(self, key: ObjectName, change: BriefChange, now: datetime) -> None:
        known, oldest = self.of(key), now - HOUR
        if change.at < oldest:
            return
        old, judged = 0, now - JUDGED
        while old < len(known) and known[old].at < judged:
            old += 1
        one = _with_shared_holder(change, known)
        older = self._older.get(key) or _NONE
        counted = older[bisect_left(older, oldest.timestamp()) :]
        counted.extend(each.at.timestamp() for each in known[:old] if each.at >= oldest)
        changes = (*known[max(old, len(known) + 1 - MAX_OF_LEASE) :], one)
        counted = counted[max(0, len(counted) + len(changes) - MAX_OF_LEASE) :]
        if counted:
            self._older[key] = counted
        else:
            self._older.pop(key, None)
        self._kept += len(changes) + len(counted) - len(known) - len(older)
        if len(changes) < FEWEST:
            self._changes[key] = _pack(changes)
            self._often.pop(key, None)
        else:
            self._changes[key] = changes
            self._often[key] = None
        self._changes.move_to_end(key)
        self.forget(now)

    def forget(self, now: datetime) -> None:
        """Drop from the front what is an hour old or too much."""
        oldest = now - HOUR
        while self._changes:
            key = next(iter(self._changes))
            changes = self.of(key)
            if self._kept <= MAX_KEPT and changes[-1].at >= oldest:
                return
            del self._changes[key]
            self._often.pop(key, None)
            self._kept -= len(changes) + len(self._older.pop(key, _NONE))

    def move(self, by: timedelta) -> None:
        for key in self._changes:
            changes = tuple([replace(one, at=moved(one.at, by)) for one in self.of(key)])
            self._changes[key] = _pack(changes) if len(changes) < FEWEST else changes
        seconds = by.total_seconds()
        self._older = {
            key: array("d", [at + seconds for at in older]) for key, older in self._older.items()
        }


def _is_found(inferred: bool, since: datetime | None, observed_at: datetime) -> bool:
    """Whether it was found after a pause, which is only known once the watch is live again."""
    return inferred and (since is None or observed_at - since > BRIEF)


def _with_shared_holder(change: BriefChange, known: Sequence[BriefChange]) -> BriefChange:
    """The same few holders take turns: keep the text of each once, and not once a change."""
    holder = change.holder
    for one in islice(reversed(known), TURNS):
        if one.holder == holder:
            return replace(change, holder=one.holder)
    return change


DAY = timedelta(days=1)
MOMENT = timedelta(microseconds=1)
MAX_SPANS = 2000  # enough for a connection that breaks all the time


class WatchedLately:
    """Only the event loop writes; any thread may read."""

    def __init__(self) -> None:
        self._spans: tuple[WatchedTime, ...] = ()  # oldest first
        self._open: WatchedTime | None = None
        self._pauses: tuple[Span, ...] = ()  # all times that nobody watched, oldest first
        self.since = EARLIEST  # when the last time ended that nobody watched; nobody did at first

    @property
    def first(self) -> datetime | None:
        """When anybody is first known to have watched."""
        spans, still = self._spans, self._open
        return spans[0].since if spans else still.since if still else None

    def read(self, cluster: str, now: datetime) -> None:
        """Load the last day from history, other processes included."""
        self._spans = tuple(spans_around(cluster, since=now - DAY, until=now, now=now))
        self._pauses = pauses(cluster)
        if self._pauses:
            self.since = self._pauses[-1][1]

    def record(self, connection: Connection) -> None:
        if connection.state is ConnectionState.LIVE:
            if self._open is None:
                self._begin(connection.since)
        elif self._open is not None:
            self._end(self._open, connection.heard_at or connection.since)

    def stood_still(self, since: datetime, until: datetime) -> None:
        """Nothing ran in between, so nobody watched."""
        if self._open is not None:
            self._end(self._open, since)
            self._begin(until)
            self.since = until

    def _begin(self, since: datetime) -> None:
        self._open = WatchedTime(since=since, until=since)
        before = max((span.until for span in self._spans), default=None)
        if before is None:
            self.since = since
            self._pauses = ((EARLIEST, since),)
        elif since - before > BRIEF:
            self.since = since
            self._pauses = (*self._pauses, (before, since))

    def _end(self, span: WatchedTime, at: datetime) -> None:
        until = max(span.since, at)
        recent = [one for one in self._spans if one.until > until - 2 * DAY]
        self._spans = (*recent[1 - MAX_SPANS :], replace(span, until=until))
        self._open = None

    def clock_jumped(self, jump: Jump) -> None:
        by = jump.by
        self._spans = tuple(_moved(span, by) for span in self._spans)
        self._pauses = tuple((moved(a, by), moved(b, by)) for a, b in self._pauses)
        self.since = moved(self.since, by)
        if self._open is not None:
            self._open = _moved(self._open, by)

    @property
    def pauses(self) -> int:
        """How many times there were that nobody watched: what spans them is drawn anew then."""
        return len(self._pauses)

    def saw(self, at: datetime) -> bool:
        """Whether somebody watched at that moment, as far as it is known."""
        known = self._pauses
        return is_watched(at, known[bisect_left(known, at, key=itemgetter(1)) :])

    def held(self, since: datetime, until: datetime, lapses: Sequence[Span] = ()) -> Held:
        """How long a term lasts that somebody may have watched from its start on."""
        known = self._pauses
        first = bisect_right(known, since, key=itemgetter(1))
        return held(since, until, known[first:], lapses)

    def unwatched(self, since: datetime, until: datetime) -> tuple[UnwatchedTime, ...]:
        """Return the parts of this range in which nobody watched, oldest first."""
        spans, still = self._spans, self._open
        if still is not None:
            spans = (*spans, replace(still, until=max(until, still.since)))
        return unwatched(spans, since=since, until=until)


def _moved(span: WatchedTime, by: timedelta) -> WatchedTime:
    return replace(span, since=moved(span.since, by), until=moved(span.until, by))


HOURS = 24

MISSING = 200  # the newest changes with missed ones before them, kept whole
_MAX_READ = 500_000  # changes of the last day that a start reads
_SECONDS = 3600
_EPOCH = datetime.fromtimestamp(0, UTC)
_OF_AN_HOUR = Struct("iI")  # the hour, and the number of its changes
_LARGEST = 2**32 - 1


def _one_more(kept: bytes, hour: int) -> bytes:
    """Return the numbers of one Lease with one more change, without those of hours long ago.

    Of 130,000 Leases most changed in one hour or two.
    """
    numbers = dict(_OF_AN_HOUR.iter_unpack(kept))
    numbers[hour] = min(numbers.get(hour, 0) + 1, _LARGEST)
    first = max(numbers) - HOURS + 1
    return b"".join(_OF_AN_HOUR.pack(*one) for one in sorted(numbers.items()) if one[0] >= first)


class _Hours(msgspec.Struct, gc=False):
    """Numbers per hour, and the newest hour. Replaced together: any thread may read them."""

    kept: tuple[int, array[float]] = (0, array("d", [0] * HOURS))

    def add(self, hour: int, by: float) -> None:
        newest = max(hour, self.kept[0])
        numbers = self.until(newest)
        place = HOURS - 1 - (newest - hour)
        if place >= 0:
            numbers[place] += by
        self.kept = (newest, numbers)

    def until(self, hour: int) -> array[float]:
        """Return a copy that ends with that hour."""
        newest, numbers = self.kept
        passed = min(max(0, hour - newest), HOURS)
        return numbers[passed:] + array(numbers.typecode, [0] * passed)


ALWAYS: Sequence[Span] = ((EARLIEST, LATEST),)
_MAX_MARKS = 4  # times in which a Lease might be vacant


class UnheldHours:
    """Seconds without a holder per hour, over all elections; each gap once it has ended.

    Of each election it keeps the changes since its holder came, and counts as
    `leases.domain.figures` does.
    """

    def __init__(self, watched: WatchedLately, abandoned_after: timedelta) -> None:
        self._watched = watched
        self._abandoned_after = abandoned_after
        self._ahead = timedelta(0)
        self._gaps = GapFollower()
        self._marks: dict[ObjectName, list[Span]] = {}  # when each Lease might be vacant
        self._hours = _Hours()

    def seconds(self, now: datetime, open_gaps: Iterable[LeaseGap] = ()) -> float:
        """Return the sum of the running hour and the 23 before it, open gaps included."""
        hour = self._hour(now)
        start = self._start_of(hour + 1 - HOURS)
        ended: float = sum(self._hours.until(hour))
        blind = self._blind(start, now)
        return ended + sum(self._of_gap(one, (start, now), blind) for one in open_gaps)

    def mark(self, key: ObjectName, *, marked: bool, now: datetime) -> None:
        """Note whether an admin says now that a Lease may be vacant."""
        spans = self._marks.get(key, [])
        if marked and not (spans and spans[-1][1] == LATEST):
            self._marks[key] = [*spans[-_MAX_MARKS:], (EARLIEST if not spans else now, LATEST)]
        elif not marked and spans and spans[-1][1] == LATEST:
            self._marks[key] = [*spans[:-1], (spans[-1][0], now)]

    def follow(self, change: Change) -> None:
        for ended in self._gaps.follow(change):
            self._add(ended)

    def forget(self, now: datetime) -> None:
        self._gaps.forget(now)

    def clock_jumped(self, by: timedelta, ahead: timedelta) -> None:
        self._ahead = ahead
        self._gaps.clock_jumped(by)
        self._marks = {
            key: [(moved(since, by), moved(until, by)) for since, until in spans]
            for key, spans in self._marks.items()
        }

    def read(self, cluster: str, day: QuerySet[models.ChangeRecord], now: datetime) -> None:
        """Begin with the elections of the last day."""
        self._marks = {
            key: [(a, LATEST if b >= now else b) for a, b in spans]
            for key, spans in marks_between(cluster, now - DAY, now).items()
        }
        rows = day.filter(kind=Kind.ELECTION.value).order_by("-at", "-id").values_list(*FIELDS)
        changes = [to_change(row) for row in rows[:_MAX_READ]][::-1]
        keys = list(dict.fromkeys(ObjectName(one.namespace, one.name) for one in changes))
        if changes:
            self._gaps.restore(changes_before(cluster, keys, changes[0].at - MOMENT))
        for change in changes:
            self.follow(change)

    def _add(self, ended: LeaseGap) -> None:
        """Add a gap to each hour that it covers."""
        since, until = ended.gap.since, ended.gap.until or ended.gap.since
        last = self._hour(until)
        blind = self._blind(since, until)
        for hour in range(last, max(self._hour(since), last - HOURS) - 1, -1):
            here = (self._start_of(hour), self._start_of(hour + 1))
            self._hours.add(hour, self._of_gap(ended, here, blind))

    def _hour(self, moment: datetime) -> int:
        return int(plus(moment, -self._ahead).timestamp()) // _SECONDS

    def _start_of(self, hour: int) -> datetime:
        return plus(plus(_EPOCH, timedelta(hours=hour)), self._ahead)

    def _of_gap(self, one: LeaseGap, here: Span, blind: Sequence[Span]) -> float:
        return unheld_seconds(
            one.gap,
            Kind.ELECTION,
            here,
            blind,
            held_since=one.held_since,
            may_be_vacant=self._marks.get(one.key, ALWAYS if one.may_be_vacant else ()),
            abandoned_after=self._abandoned_after,
        )

    def _blind(self, since: datetime, until: datetime) -> Sequence[Span]:
        if self._watched.first is None:
            return ()
        around = self._watched.unwatched(plus(since, -AROUND), plus(until, AROUND))
        return within(around, since, until)


class Activity:
    """One cluster's last day. Only the event loop writes; any thread may read."""

    def __init__(self, abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER) -> None:
        self._jumped = self._ahead = timedelta(0)  # sum of all clock jumps
        self.watched = WatchedLately()
        self._leases: dict[ObjectName, bytes] = {}  # changes of each hour that had any
        self._changes: defaultdict[tuple[Kind, ChangeType], _Hours] = defaultdict(_Hours)
        self.unheld = UnheldHours(self.watched, abandoned_after)
        self.last_hour = LastHour()
        self.missed: deque[Change] = deque(maxlen=MISSING)  # oldest first

    def clock_jumped(self, jump: Jump) -> None:
        self._jumped += jump.by
        self._ahead = round(self._jumped / HOUR) * HOUR  # keep whole hours
        by = jump.by
        self.watched.clock_jumped(jump)
        self.unheld.clock_jumped(by, self._ahead)
        self.last_hour.clock_jumped(jump)
        self.missed = deque((moved_change(one, by) for one in self.missed), MISSING)

    def note(self, changes: Iterable[Change], marks: Container[ObjectName] = ()) -> None:
        """`marks`: the Leases that may be vacant."""
        for change in changes:
            key = ObjectName(change.namespace, change.name)
            if change.kind is Kind.ELECTION:
                self.unheld.mark(key, marked=key in marks, now=change.observed_at)
                self.unheld.follow(change)
            if change.inferred and change.change is ChangeType.CREATED:
                continue
            found = _is_found(change.inferred, change.inferred_since, change.observed_at)
            watched = not found and self.watched.saw(change.at)
            self._count(key, change.kind, change.change, change.at, watched=watched)
            self.last_hour.add(key, change.kind, BriefChange.of(change), change.observed_at)
            if change.missed:
                self.missed.append(change)

    def _count(
        self, key: ObjectName, kind: Kind, change: ChangeType, at: datetime, *, watched: bool
    ) -> None:
        if watched:
            hour = self._hour(at)
            self._leases[key] = _one_more(self._leases.get(key, b""), hour)
            self._changes[kind, change].add(hour, 1)

    def of(self, key: ObjectName, now: datetime) -> list[int]:
        """Return changes of one Lease per hour that somebody watched, the current hour last."""
        numbers, hour = dict(_OF_AN_HOUR.iter_unpack(self._leases.get(key, b""))), self._hour(now)
        return [numbers.get(one, 0) for one in range(hour + 1 - HOURS, hour + 1)]

    def totals(self, now: datetime, *, hours: int = HOURS) -> dict[ObjectName, int]:
        """Return the number of watched changes in the last `hours`, the current one included, for
        each Lease that had any.
        """
        first = self._hour(now) + 1 - hours
        sums = {
            key: sum(number for hour, number in _OF_AN_HOUR.iter_unpack(kept) if hour >= first)
            for key, kept in self._leases.copy().items()
        }
        return {key: number for key, number in sums.items() if number}

    def of_kind(self, kind: Kind, changes: Iterable[ChangeType], now: datetime) -> list[int]:
        """Return how many of these changes of Leases of a kind somebody watched, per hour, the
        current hour last.
        """
        rows = [
            hours.until(self._hour(now))
            for change in changes
            if (hours := self._changes.get((kind, change))) is not None
        ]
        return [int(sum(numbers)) for numbers in zip(*rows, strict=True)] or [0] * HOURS

    def forget(self, now: datetime) -> None:
        """Drop the Leases whose last change is a day old."""
        oldest = self._hour(now) - HOURS
        for key, kept in self._leases.copy().items():
            if _OF_AN_HOUR.unpack_from(kept, len(kept) - _OF_AN_HOUR.size)[0] <= oldest:
                del self._leases[key]
        self.unheld.forget(now)
        self.last_hour.forget(now)

    def read(self, cluster: str, now: datetime) -> None:
        self.watched.read(cluster, now)
        day = models.ChangeRecord.objects.filter(cluster=cluster, at__gte=now - HOURS * HOUR)
        self.unheld.read(cluster, day, now)
        seen = day.exclude(change=ChangeType.CREATED.value, inferred=True).order_by("-at")
        few = ("namespace", "name", "kind", "change", "at", "gap_seconds", "holder")
        of_sight = ("inferred", "inferred_since", "observed_at")
        newest_first: list[tuple[ObjectName, Kind, BriefChange]] = []
        rows = seen.values_list(*few, *of_sight)[:_MAX_READ]
        for namespace, name, kind, change, at, gap, holder, *sight in rows:
            key = ObjectName(namespace, name)
            what, known_kind = stored_change(change), stored_kind(kind)
            if what is None:
                continue
            watched = not _is_found(*sight) and self.watched.saw(at)
            self._count(key, known_kind, what, at, watched=watched)
            if at >= now - HOUR:
                brief = BriefChange(what, at, from_stored(holder), gap)
                newest_first.append((key, known_kind, brief))
        for key, known_kind, brief in reversed(newest_first):
            self.last_hour.add(key, known_kind, brief, now)
        missing = seen.filter(missed__gt=0).values_list(*FIELDS)
        self.missed.extendleft(map(to_change, missing[:MISSING]))

    def _hour(self, moment: datetime) -> int:
        return int((moment - self._ahead).timestamp()) // _SECONDS
