"""Renewals: their longest intervals in the last hour, those that came late, and silences of all.

We read it now and then from each Lease's last intervals: work per event would cost something for
every renewal of the cluster.
"""

from array import array
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from struct import Struct
from threading import Lock

import msgspec

from leases.domain.cause.clue import (
    LateAround,
    LateRenewal,
    LateWriter,
    OverdueInterval,
    Silence,
    late_counts_for,
)
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import is_near_miss, samples
from leases.domain.steady_clock import Jump, moved
from leases.tracking.tracked_lease import Tracked

SLOT = 10.0  # seconds
SLOTS = 360  # an hour
MAX_LEASES = 5000  # Leases followed: 0.8 kB each
MAX_ASKED = 200
# Intervals are kept as half floats, exact to 1 in 2,000. Their bits, as a number, sort as they do.
_HALF, _BITS = Struct("e"), Struct("H")
_LONGEST = 65504.0  # seconds: the largest half float
_NONE = 0  # no renewal ended in the slot


class LongestInterval(msgspec.Struct, frozen=True):
    """The longest interval, in seconds, that ended within the slot that begins at `since`."""

    since: datetime
    seconds: float


class RenewalLog:
    """Collects the intervals of the Leases it is shown. Any thread may call `of`."""

    def __init__(self) -> None:
        self._rings: dict[ObjectName, _Ring] = {}
        self._asked: dict[ObjectName, None] = {}  # any thread adds to it
        self._asking = Lock()
        self._ahead = timedelta(0)  # of the slots here, by which the wall clock was set

    @property
    def asked(self) -> list[ObjectName]:
        """The Leases somebody asked for lately: they are worth being shown."""
        with self._asking:
            return list(self._asked)

    def clock_jumped(self, jump: Jump) -> None:
        """The wall clock was set: the slots that were filled stay as long ago as they were."""
        self._ahead += jump.by

    def look(self, leases: Iterable[Tracked]) -> None:
        """Add the renewals since the last look, of at most MAX_LEASES Leases."""
        for tracked in leases:
            key = tracked.key
            ring = self._rings.get(key)
            if ring is None:
                if len(self._rings) >= MAX_LEASES or not tracked.renewals_seen:
                    continue
                ring = self._rings[key] = _Ring()
            if ring.seen != tracked.renewals_seen:
                ring.take(tracked, self._ahead)

    def forget(self, before: datetime) -> None:
        """Drop the Leases that were not renewed since then."""
        oldest = int((before - self._ahead).timestamp() // SLOT)
        for key in [key for key, ring in self._rings.items() if ring.newest < oldest]:
            del self._rings[key]

    def of(self, tracked: Tracked) -> tuple[LongestInterval, ...]:
        """What is known of one Lease, oldest first; slots without a renewal are left out.

        Of one that was not followed, what it remembers itself; it is asked for from now on.
        """
        key = tracked.key
        with self._asking:
            self._asked.pop(key, None)
            self._asked[key] = None
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]
        ring = self._rings.get(key)
        if ring is None:
            ring = _Ring()
            ring.take(tracked, self._ahead)
        return ring.intervals(self._ahead)

    def follows(self, key: ObjectName) -> bool:
        """Whether all renewals of this Lease are added; those beyond MAX_LEASES are not."""
        return key in self._rings

    def longest(self, key: ObjectName) -> float:
        """The longest interval, in seconds, that is known of one Lease; 0.0 if none is."""
        ring = self._rings.get(key)
        return 0.0 if ring is None else ring.longest()


class _Ring:
    """One Lease's hour: a slot's place is its number modulo the size."""

    __slots__ = ("_longest", "newest", "seen")

    def __init__(self) -> None:
        self._longest = array("H", [_NONE]) * SLOTS
        self.newest = 0  # number of the newest slot
        self.seen = 0  # renewals

    def take(self, tracked: Tracked, ahead: timedelta) -> None:
        """The renewals that are new, as far back as the Lease remembers them."""
        new = tracked.renewals_seen - self.seen
        self.seen = tracked.renewals_seen
        intervals = samples(tracked.intervals)
        if new < 0 or new > len(intervals):
            new = len(intervals)
        ended = (tracked.observed_at - ahead).timestamp()
        found = []
        for seconds in reversed(intervals[len(intervals) - new :]):
            found.append((int(ended // SLOT), seconds))
            ended -= seconds
        for slot, seconds in reversed(found):
            self._put(slot, seconds)

    def _put(self, slot: int, seconds: float) -> None:
        for passed in range(max(self.newest, slot - SLOTS) + 1, slot + 1):
            self._longest[passed % SLOTS] = _NONE
        self.newest = max(self.newest, slot)
        if slot > self.newest - SLOTS:
            (bits,) = _BITS.unpack(_HALF.pack(min(seconds, _LONGEST)))
            self._longest[slot % SLOTS] = max(self._longest[slot % SLOTS], bits)

    def longest(self) -> float:
        return _seconds(max(self._longest))

    def intervals(self, ahead: timedelta) -> tuple[LongestInterval, ...]:
        newest, longest = self.newest, self._longest[:]  # the loop writes on
        oldest = max(0, newest - SLOTS + 1)
        slots = ((slot, longest[slot % SLOTS]) for slot in range(oldest, newest + 1))
        epoch = datetime.fromtimestamp(0, UTC) + ahead
        return tuple(
            LongestInterval(epoch + timedelta(seconds=slot * SLOT), _seconds(bits))
            for slot, bits in slots
            if bits != _NONE
        )


def _seconds(bits: int) -> float:
    seconds: float = _HALF.unpack(_BITS.pack(bits))[0]
    return seconds


MAX_LATE_LEASES = 10_000
KEPT = 12  # of one Lease
IN_A_PART = 32  # late renewals of all Leases
PARTS = 8
KEPT_NEAR = 10_000  # near misses of all Leases
LATELY = timedelta(minutes=3)


class _LateTogether:
    """The newest late renewals of many Leases, in parts: each change holds some for long."""

    def __init__(self) -> None:
        self._full: LateAround = ()
        self._last: tuple[LateWriter, ...] = ()

    def add(self, one: LateWriter) -> None:
        self._last = (*self._last, one)
        if len(self._last) == IN_A_PART:
            self._full, self._last = (*self._full[1 - PARTS :], self._last), ()

    def lately(self, now: datetime) -> LateAround:
        """Return those of the last minutes, and few that are older."""
        known = (*self._full, self._last) if self._last else self._full
        return tuple(some for some in known if now - some[-1].at <= LATELY)


_Overdue = tuple[datetime, tuple[OverdueInterval, ...]]  # until when they may tell why
_NOT_OVERDUE: _Overdue = datetime.min.replace(tzinfo=UTC), ()


class LateRenewals:
    """The last overdue renewals of each Lease that had any lately, and the last near misses."""

    def __init__(self) -> None:
        # Not deques: one has room for 64, and most Leases had one or two.
        self._of: dict[ObjectName, _Overdue] = {}
        # Of all Leases: thousands of heartbeats do not push out the elections.
        self._newest, self._hearts = _LateTogether(), _LateTogether()
        self._lately: LateAround = ()  # one for all changes of a moment
        self._near: deque[LateRenewal] = deque(maxlen=KEPT_NEAR)

    def of(self, key: ObjectName) -> tuple[OverdueInterval, ...]:
        """Return the last overdue renewals of one Lease, oldest first."""
        return self._of.get(key, _NOT_OVERDUE)[1]

    def lately(self, now: datetime) -> LateAround:
        """Return the last overdue renewals of all Leases in the last minutes."""
        found = (*self._hearts.lately(now), *self._newest.lately(now))
        if found != self._lately:
            self._lately = found
        return self._lately

    def near_misses(self, since: datetime) -> list[LateRenewal]:
        """Return the near misses since then, oldest first. Any thread may ask."""
        return [one for one in list(self._near) if one.at >= since]

    def clock_jumped(self, jump: Jump) -> None:
        near = [msgspec.structs.replace(one, at=moved(one.at, jump.by)) for one in self._near]
        self._near = deque(near, KEPT_NEAR)

    def note(self, known: Tracked, at: datetime) -> LateRenewal | None:
        """Add a renewal of the late state `known`. Returns it if it is a near miss."""
        seconds = (at - known.observed_at).total_seconds()
        duration, holder = known.lasts_seconds, known.holder
        counts = timedelta(seconds=late_counts_for(duration or 0))
        earlier = [one for one in self.of(known.key) if one.at > at - counts]
        self._of.pop(known.key, None)
        self._of[known.key] = at + counts, (*earlier[1 - KEPT :], OverdueInterval(at, seconds))
        self._forget(at)
        if holder is not None:
            newest = self._hearts if known.kind is Kind.HEARTBEAT else self._newest
            newest.add(LateWriter(known.key, holder, at, seconds, known.kind))
        if duration is None or holder is None or not is_near_miss(known, seconds):
            return None
        near = LateRenewal(known.key, at, seconds, duration, holder)
        self._near.append(near)
        return near

    def _forget(self, now: datetime) -> None:
        """Drop from the front what tells no more, or is too much."""
        while self._of:
            key = next(iter(self._of))
            if len(self._of) <= MAX_LATE_LEASES and self._of[key][0] >= now:
                return
            del self._of[key]


SHORTEST = timedelta(seconds=1)
KEPT_SILENCES = 64


class Silences:
    def __init__(self) -> None:
        self._recent: deque[Silence] = deque(maxlen=KEPT_SILENCES)
        self._since: datetime | None = None  # when the watch began to count
        self._reads = 0  # since then: a backlog comes in few reads
        self.heard: datetime | None = None  # when the newest events came

    def connected(self, now: datetime) -> None:
        """The watch is live: count anew."""
        self._since, self._reads, self.heard = now, 0, now

    def stood_still(self, since: datetime, now: datetime) -> None:
        """Our process did not run: that silence was ours."""
        for one in [one for one in self._recent if one.until > since]:
            self._recent.remove(one)
        if self.heard is not None:
            self.heard = now

    def lost(self) -> None:
        """The watch broke: no silence from now on is the cluster's."""
        self.heard = None

    def clock_jumped(self, jump: Jump) -> None:
        self._since, self.heard = moved(self._since, jump.by), moved(self.heard, jump.by)
        self._recent.clear()

    def wrote(self, now: datetime) -> None:
        """Events came with one read."""
        if self.heard is None:
            return
        if now - self.heard > SHORTEST:
            self._recent.append(self._silence(self.heard, now))
        self._reads += 1
        self.heard = now

    def lately(self, now: datetime) -> tuple[Silence, ...]:
        """Return the last ones, oldest first, and the one that goes on."""
        while self._recent and now - self._recent[0].until > LATELY:
            self._recent.popleft()
        silences = tuple(self._recent)
        if self.heard is not None and now - self.heard > SHORTEST:
            silences += (self._silence(self.heard, now),)
        return silences

    def _silence(self, since: datetime, until: datetime) -> Silence:
        watched = (since - (self._since or since)).total_seconds()
        rate = self._reads / watched if watched > 0 else 0.0
        return Silence(since, until, rate * (until - since).total_seconds())
