"""Find the next phase change, and the times when none may be judged: Kubernetes reports no expiry.

Live, a change happened when we observed it. After a lost connection, late events report the past.
After a list or a restart every difference is inferred: it happened somewhere in a time window.

After a break, or after the process stood still, events of that time may still arrive. And received
data that is not processed yet may contain the very renewal that a deadline waits for.

Alarms are grouped into short spans of time. A renewal only postpones a deadline, so it touches
nothing: the alarm fires early and is armed again. It fires up to SPAN early, then waits in a heap
and fires exactly. No step visits all Leases.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from math import ceil, floor, inf
from statistics import median
from typing import Any, Generic, TypeVar

import msgspec

from leases.domain.change import Observation
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase, trusted_cadence
from leases.domain.steady_clock import EARLIEST, Jump, after, moved, plus, span
from leases.domain.watched_times import MissedTime
from leases.tracking.tracked_lease import Tracked
from leases.wire.watch_decoding import Applied, Renewed, WatchEvent

STEADY_SHARE = 0.75  # of the cadence; nearly all renewals are further apart
STEPS = 64  # rounding steps per second, so that many Leases share one value


class RenewalOutlook(msgspec.Struct, frozen=True, gc=False):
    """What may happen to a Lease while it is only renewed."""

    # The phase does not change sooner than this after any renewal, while intervals are not shorter
    # than `steady`.
    turn_delay: timedelta | None
    steady: timedelta
    plain: bool  # a renewal may change nothing but freshness
    lasts: timedelta  # it expires this long after a renewal


EVER = timedelta.max
UNKNOWN = RenewalOutlook(None, EVER, plain=False, lasts=EVER)


def outlook(known: Tracked, turn: datetime | None) -> RenewalOutlook:
    """Return for which renewals nobody needs to compute the next phase change.

    While no interval is below a share of the current cadence, neither is the cadence.
    """
    lasting, cadence = known.lasting, trusted_cadence(known)
    plain = (
        lasting.settled
        # The first renewal may show that it is no lock: see classify.
        and (known.renewals_seen > 0 or lasting.kind is not Kind.LOCK)
        and not lasting.rewritten
        and not lasting.renewed_by_hand
        and lasting.phase in (Phase.HELD, Phase.UNTIMED)
    )
    lasts = lasting.lease.spec.lease_duration_seconds
    if cadence is None:
        return _shared(None, None, lasts, plain=plain)
    steady = ceil(STEADY_SHARE * cadence * STEPS)
    if turn is None:
        return _shared(None, steady, lasts, plain=plain)
    turn_delay = (turn - known.observed_at).total_seconds() * STEADY_SHARE
    return _shared(floor(turn_delay * STEPS), steady, lasts, plain=plain)


@lru_cache(4096)
def _shared(
    turn_delay: int | None, steady: int | None, lasts: int | None, *, plain: bool
) -> RenewalOutlook:
    return RenewalOutlook(
        None if turn_delay is None else span(turn_delay / STEPS),
        EVER if steady is None else span(steady / STEPS),
        plain,
        EVER if lasts is None else span(lasts),
    )


BRIEF = timedelta(seconds=2)  # a shorter break leaves no judgement in doubt
MAX_LISTED = 8  # no deadline waits for more lists than that


class BlindTimes:
    def __init__(self) -> None:
        self.heard: datetime | None = None  # when the newest event or list came
        # Since when events may report the past; None when live
        self.behind: datetime | None = None
        # Events that came up to then are followed since; None: unknown
        self._followed: datetime | None = None
        self._blind: tuple[datetime | None, datetime] | None = None  # the last blind time
        # The blind times that the last lists ended: much of what ran out in them is judged later.
        self._listed: deque[tuple[datetime | None, datetime]] = deque(maxlen=MAX_LISTED)
        self._jumped: datetime | None = None  # time of the last clock jump, by the new clock
        # When the last time ended that nobody watched: nothing is measured across it.
        self.watched_since = EARLIEST

    def missed(self, missed: MissedTime) -> None:
        if missed.since is not None:
            self.watched_since = max(self.watched_since, missed.until)

    @property
    def known_until(self) -> datetime | None:
        """Until when we observed everything; None: we never did."""
        if self.behind is None:
            return self.heard
        return self.behind if self._followed is None else max(self.behind, self._followed)

    def lost(self, since: datetime) -> None:
        """Nothing has been observed since then."""
        self.behind = since if self.behind is None else min(self.behind, since)

    def resumed(self, at: datetime) -> None:
        """The watch continues where it stopped."""
        if self.behind is not None and at - self.behind > BRIEF:
            self._blind = (self.behind, at)

    def follows(self, until: datetime) -> None:
        """Events still report the past, and those that were sent by `until` are followed."""
        self._followed = until

    def caught_up(self) -> None:
        """Events report the present again."""
        self.behind = None

    def clock_jumped(self, jump: Jump) -> None:
        """Move all times. Whatever expires across the jump is inferred."""
        by = jump.by
        self.heard, self.behind = moved(self.heard, by), moved(self.behind, by)
        self._followed = moved(self._followed, by)
        self.watched_since = moved(self.watched_since, by)
        if self._blind is not None:
            self._blind = (moved(self._blind[0], by), moved(self._blind[1], by))
        self._listed.clear()
        self._jumped = jump.after

    def listed(self, at: datetime, *, as_of: datetime) -> None:
        """A list makes everything known again. Its first page may be older than its last."""
        self._blind = (self.known_until, at)
        self._listed.append((self.known_until, as_of))
        self.heard, self.behind = at, as_of if as_of < at else None

    def event(
        self,
        now: datetime,
        newest: datetime | None,
        *,
        inferred: bool,
        unseen_since: datetime | None = None,
    ) -> Observation:
        """Return how an event was observed.

        `newest`: it happened after this. `unseen_since`: some write since then was not understood.
        """
        if unseen_since is not None:
            return Observation(now=now, since=min(unseen_since, now), inferred=True)
        if self.behind is None and not inferred:
            return Observation(now=now, watched_since=self.watched_since)
        since = _later(self.behind, newest, now)
        return Observation(
            now=now, since=since, inferred=inferred, watched_since=self.watched_since
        )

    def listing(
        self, now: datetime, newest: datetime | None, *, remembered: bool = False
    ) -> Observation:
        """Return how a Lease in a list was observed."""
        since = _later(self.known_until, newest, now)
        return Observation(now=now, since=since, inferred=True, listed=True, remembered=remembered)

    def unseen_since(
        self, known: Tracked, now: datetime, *, remembered: bool = False
    ) -> datetime | None:
        """Return the start of the blind time in which a Lease expired; None: it was observed.

        It was observed if it ran out before we lost sight, however late we judge it: unless it is
        remembered from an earlier run, which does not store every renewal. It was not if the wall
        clock jumped since the renewal.
        """
        blind = self._blind
        if self.behind is not None and now - self.behind > BRIEF:
            blind = (self.known_until, now)
        across = self._jumped is not None and known.observed_at < self._jumped
        runs_out = known.runs_out_at if blind or across else None
        if runs_out is None:
            return None
        for lost, until in (*self._listed, blind or (None, EARLIEST)):
            in_sight = lost is not None and runs_out <= lost and not remembered
            if runs_out <= until and not in_sight:
                since = lost or known.lease.metadata.creation_timestamp or runs_out
                return min(since, runs_out)
        return min(self._jumped, runs_out) if self._jumped is not None and across else None


def _later(since: datetime | None, newest: datetime | None, now: datetime) -> datetime | None:
    """Return the start of a time window: after the known state of the Lease."""
    if since is not None and newest is not None:
        since = max(since, newest)
    return None if since is None else min(since, now)


GRACE = timedelta(seconds=1)  # after connecting, for late events to arrive
OLD = 0.5  # seconds; an older event is late, or its writer's clock is wrong
LONG_GRACE = timedelta(seconds=5)  # to distinguish the two
NEARER = 0.05  # seconds by which a read must be newer than all before it
SAMPLE = 9  # events per read whose age is measured
SILENT = timedelta(seconds=1)  # a shorter silence is normal
STALL = timedelta(seconds=2)  # without a check for this long, the process stood still


class DeadlineGate:
    """Of one watch. `since` is when deadlines may be judged; None while the watch is not live."""

    def __init__(self) -> None:
        self.since: datetime | None = None
        self.catching_up = False
        # What is received after this is no backlog of the server, however late we follow it.
        self._sent_until = EARLIEST
        self._least_age = self._least_age_received = inf
        # The least age of events that were live, by their writers' clocks; inf: unknown
        self._usual_age = inf
        self._written_until: datetime | None = None  # when what was read last was written
        self._ask: Callable[[], float] = float
        self._silent: Callable[[], float] = float
        self.look: Callable[[], object] = bool  # asks the cluster whether it is alive
        # The last time in which nothing ran: clocks may have stood still, too.
        self._stood: tuple[datetime, datetime] = EARLIEST, EARLIEST
        self._unprocessed = timedelta(0)

    def lost(self) -> None:
        """The watch is not live: what it did not read is no data of ours any more."""
        self.since, self._ask, self._silent, self.look = None, float, float, bool

    def clock_jumped(self, jump: Jump) -> None:
        """Move the time, and measure the age of events anew."""
        self.since, self._sent_until = moved(self.since, jump.by), moved(self._sent_until, jump.by)
        self._stood = moved(self._stood[0], jump.by), moved(self._stood[1], jump.by)
        self._least_age = self._least_age_received = self._usual_age = inf
        self._written_until = None

    def connected(
        self,
        now: datetime,
        unprocessed: Callable[[], float],
        silent: Callable[[], float] = float,
        look: Callable[[], object] = bool,
    ) -> None:
        """The watch is live. `unprocessed` returns how many seconds received data has waited,
        `silent` for how long nothing has shown that the cluster is alive, which `look` asks it.
        """
        self._ask, self._silent, self.look = unprocessed, silent, look
        self._begin_anew(now)
        self.resumed(now)

    def resumed(self, now: datetime) -> None:
        """Events from the time we were disconnected may still arrive."""
        self.since = now + GRACE
        if not self.catching_up:
            self._begin_anew(now)
        self._least_age = inf

    def _begin_anew(self, now: datetime) -> None:
        self.catching_up, self._sent_until, self._least_age_received = True, now + GRACE, inf
        self._written_until = None

    def caught_up(self) -> None:
        """Events report the present again."""
        self.catching_up = False
        self._usual_age = min(self._usual_age, self._least_age)

    def arrived(self, events: Sequence[WatchEvent], now: datetime) -> None:
        """While each read is newer than all before it, the server is sending a backlog.

        The writers' clocks may be wrong, so the age itself proves nothing; that it falls does.
        """
        if not self.catching_up or self.since is None:  # or it is replayed after a 410
            return
        some = events[:: max(1, len(events) // SAMPLE)]
        claimed = [claimed_at(event) for event in some]
        ages = [(now - time).total_seconds() for time in claimed if time is not None]
        if not ages:
            return
        age, waited = median(ages), self.unprocessed
        if len(ages) >= SAMPLE and self._usual_age != inf:  # events come in the order of writing
            self._written_until = after(now, -max(0.0, age - self._usual_age))
        if age < self._least_age - NEARER:
            self._least_age = age
            self.since = now + (GRACE if age < OLD else LONG_GRACE)
        age -= waited.total_seconds()
        if age < self._least_age_received - NEARER:
            self._least_age_received = age
            self._sent_until = now - waited + (GRACE if age < OLD else LONG_GRACE)

    @property
    def unprocessed(self) -> timedelta:
        """How long received data may have waited already."""
        return timedelta(seconds=self._ask())

    def behind(self, now: datetime, due: datetime | None) -> datetime | None:
        """Return since when our state is out of date though the watch is live, or None.

        Either the process stood still since the check that was `due`, or more arrives than we
        process.
        """
        if self.since is None:
            return None
        before, self._unprocessed = self._unprocessed, self.unprocessed
        if due is not None and now - due > STALL:
            return due
        if self._unprocessed and before and self._unprocessed > GRACE:
            return now - self._unprocessed
        return None

    def until(self, now: datetime) -> datetime | None:
        """Return up to when deadlines may be judged: all data received until then was applied."""
        known = now - self._unprocessed
        return known if self.since is not None and known >= self.since else None

    def followed_until(self, now: datetime) -> datetime | None:
        """Return until when all that was written is followed, while events report the past.

        Either much received data waits, or the server's backlog is so old. None: unknown.
        """
        if not self.catching_up or self.since is None:
            return None
        known, waits = now - self._unprocessed, self._unprocessed > GRACE
        times = [known] if waits and known >= self._sent_until else []
        if self._written_until is not None:
            times.append(plus(self._written_until, -LONG_GRACE))
        return max(times, default=None)

    def alive_until(self, now: datetime) -> datetime:
        """Return until when the cluster was surely alive: what ran out later, it may have renewed
        without our hearing of it.
        """
        silent, (since, until) = timedelta(seconds=self._silent()), self._stood
        if now - silent < until:
            return min(now - silent, since)
        return now if silent < SILENT else now - silent

    def stood_still(self, since: datetime, now: datetime) -> None:
        """Nothing ran meanwhile; `silent` may not count that time."""
        self._stood = since, now


def claimed_at(event: WatchEvent) -> datetime | None:
    """When the writer of this event says that it renewed."""
    if type(event) is Renewed:
        return event.renew_time
    return event.lease.spec.renew_time if type(event) is Applied else None


def ran_out_between(known: Tracked, since: datetime, until: datetime) -> bool:
    """Whether it is not told yet that it ran out after `since` and by `until`."""
    runs_out = known.runs_out_at if known.phase in (Phase.HELD, Phase.LATE) else None
    return runs_out is not None and since < runs_out <= until


class TimerErrors:
    """Raises errors of timers in the task of the watch; the event loop would only log them."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._error: Exception | None = None

    @contextmanager
    def raised_here(self) -> Iterator[None]:
        """While this runs in a task, errors of timers are raised here."""
        self._error = None
        self._task = task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if self._error is None or (task is not None and task.uncancel() > 0):
                raise
            raise self._error from None
        finally:
            self._task = None

    def run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            if self._task is None or self._error is not None:
                raise
            self._error = error
            self._task.cancel()


SPAN = timedelta(milliseconds=500)
_EPOCH = datetime.fromtimestamp(0, UTC)


class Alarm(msgspec.Struct, kw_only=True, gc=False):
    """One Lease's alarm; `armed` is when it fires, never after its deadline."""

    key: ObjectName
    armed: datetime | None = None


AnyAlarm = TypeVar("AnyAlarm", bound=Alarm)


class Deadlines(Generic[AnyAlarm]):
    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all alarms. The owner resets `armed`."""
        # Span number -> when it begins, and the alarms in it.
        self._spans: dict[int, tuple[datetime, list[AnyAlarm]]] = {}
        self._order: list[int] = []  # a heap of span numbers
        self._begun = -1  # the last span that has begun
        self._heap: list[tuple[datetime, int, AnyAlarm]] = []
        self._number = count()

    def __len__(self) -> int:
        return len(self._heap) + sum(len(span) for _, span in self._spans.values())

    def arm(self, alarm: AnyAlarm, when: datetime | None) -> None:
        """Let an alarm fire at `when` or earlier. An earlier alarm stays."""
        if when is None or (alarm.armed is not None and alarm.armed <= when):
            return
        number = (when - _EPOCH) // SPAN
        if number <= self._begun:
            alarm.armed = when
            heapq.heappush(self._heap, (when, next(self._number), alarm))
            return
        span = self._spans.get(number)
        if span is None:
            span = self._spans[number] = (_EPOCH + number * SPAN, [])
            heapq.heappush(self._order, number)
        alarm.armed = span[0]  # one object, shared by all of them
        span[1].append(alarm)

    def disarm(self, alarm: AnyAlarm) -> None:
        """Cancel it. Its entry is dropped when its time comes."""
        alarm.armed = None

    def next(self) -> datetime | None:
        """Return the earliest time at which an alarm may fire."""
        heap = self._heap
        while heap and heap[0][2].armed is not heap[0][0]:
            heapq.heappop(heap)
        exact = heap[0][0] if heap else None
        if not self._drop_stale():
            return exact
        begins, _ = self._spans[self._order[0]]
        return begins if exact is None else min(begins, exact)

    def due(self, now: datetime) -> Iterator[AnyAlarm]:
        """Yield and disarm every alarm that fires by `now`; the caller arms early ones again."""
        while (when := self.next()) is not None and when <= now:
            if self._heap and self._heap[0][0] <= when:
                alarm = heapq.heappop(self._heap)[2]
                alarm.armed = None
                yield alarm
                continue
            number = self._order[0]
            self._begun = max(self._begun, number)
            begins, span = self._spans[number]
            while span:
                alarm = span.pop()
                if alarm.armed is begins:
                    alarm.armed = None
                    yield alarm

    def _drop_stale(self) -> bool:
        """Drop cancelled and moved entries. Returns whether a span waits."""
        while self._order:
            begins, span = self._spans[self._order[0]]
            while span:
                if span[-1].armed is begins:
                    return True
                span.pop()
            del self._spans[heapq.heappop(self._order)]
        return False
