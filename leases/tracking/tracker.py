"""Follow one cluster: events from the reflector and the clock go in, updates go to the sinks.

Only the event loop writes; any thread may read.

No Lease expires because we stopped observing: deadlines are judged only while the watch is live,
and after a break only once late events had time to arrive.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from statistics import median

import msgspec

from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump, moved, span
from leases.domain.watched_times import Connection, ConnectionState, MissedTime, Missing
from leases.tracking.counters import Counters
from leases.tracking.deadlines import GRACE, DeadlineGate, TimerErrors, claimed_at
from leases.tracking.kind_overrides import NO_MARKS, Kinds, Marks
from leases.tracking.shared_timer import MAX_WAIT, DeadlineTimer, SharedTimer
from leases.tracking.skipped_writes import SkippedLog
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Sink, Tracked, Update
from leases.tracking.unwatched_writes import STOOD_STILL, MissedTimes
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Bookmark,
    Connected,
    Deleted,
    Disconnected,
    Listed,
    ListPage,
    ReflectorEvent,
    Renewed,
    Replayed,
    WatchEvent,
)

SAMPLE = 15  # the lag is the median of this many renewals
FRESH = 5  # of them, that are taken at once
NOTE_EVERY = timedelta(seconds=1)  # at least, between two looks at renewals


USUAL_EVERY = 16  # reads, while none waits
NEWEST = 5  # events of each read whose age is looked at
WAITS = 0.5  # seconds; what waits for less is being read


class Lags:
    """How late events are: the delay of the last renewals, and the age of the newest event taken.

    The writers' clocks may be wrong. So the age is measured against the delay that events have
    while none wait.
    """

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=SAMPLE)
        self._usual: deque[float] = deque(maxlen=SAMPLE)
        self._newest: datetime | None = None  # when the newest event taken was written
        self._noted_at: datetime | None = None
        self._delay: float | None = None

    def took(self, events: Sequence[WatchEvent], now: datetime, *, waiting: bool) -> None:
        """Note the events of one read, of whatever kind."""
        claimed = [at for at in map(claimed_at, events[-NEWEST:]) if at is not None]
        if not claimed:
            return
        delay = median((now - at).total_seconds() for at in claimed)
        if not waiting:
            self._usual.append(delay)
        usual = median(self._usual) if self._usual else 0.0
        self._newest = now - span(max(0.0, delay - usual))

    def behind(self, now: datetime, waited: float) -> float:
        """Return how old the newest event taken is; `waited`: how long data waited at most."""
        if waited < WAITS:
            return 0.0
        if self._newest is None:
            return waited
        return min(waited, max(0.0, (now - self._newest).total_seconds()))

    def note(
        self,
        keys: Sequence[ObjectName],
        get: Callable[[ObjectName], Tracked | None],
        now: datetime,
    ) -> float | None:
        """Add renewals, newest last. Returns the median in seconds; None before the first."""
        if not keys or (self._noted_at is not None and now - self._noted_at < NOTE_EVERY):
            return self._delay
        self._noted_at = now
        for key in keys[-FRESH:]:
            known = get(key)
            if known is not None and not known.estimated and known.renew_time:
                lag = known.observed_at - known.renew_time
                self._lags.append(lag.total_seconds())
        self._delay = max(0.0, median(self._lags)) if self._lags else None
        return self._delay

    def forget(self) -> None:
        """Drop all samples: our clock was set."""
        self._lags.clear()
        self._noted_at = self._delay = None
        self._usual.clear()
        self._newest = None


logger = logging.getLogger(__name__)

REPORT_EVERY = timedelta(seconds=0.5)
LOG_EVERY = timedelta(seconds=2)


class Progress:
    def __init__(self, cluster: str, resource_version: str, began: datetime) -> None:
        self.resource_version = resource_version
        self._cluster = cluster
        self._read = 0
        self._began = began
        self._logged_at: datetime | None = None
        self._reported_at: datetime | None = None

    def clock_jumped(self, jump: Jump) -> None:
        self._began = moved(self._began, jump.by)
        self._logged_at = self._reported_at = None

    def step(self, page: ListPage | Listed, now: datetime) -> str | None:
        """Count a page. Returns a sentence, at most one every REPORT_EVERY."""
        self._read += len(page.leases)
        if isinstance(page, Listed):
            seconds = (now - self._began).total_seconds()
            logger.info("%s: listed %d Leases in %.1f s", self._cluster, self._read, seconds)
            return None
        # Not every API sends its estimate of the rest.
        of = "" if page.remaining is None else f" of about {self._read + page.remaining:,}"
        sentence = f"Listed {self._read:,}{of} Leases."
        if self._logged_at is None or now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            logger.info("%s: %s", self._cluster, sentence)
        if self._reported_at is None or now - self._reported_at >= REPORT_EVERY:
            self._reported_at = now
            return sentence
        return None


BETWEEN_TURNS = timedelta(seconds=0.02)  # at least, between two checks of the deadlines
BETWEEN_PARTS = timedelta(seconds=0.005)  # where one check was not enough
UNTIL_READ = timedelta(seconds=0.1)  # where data waits that must be read first


class Tracker:
    """Feeds one store and all sinks. `resource_version` is the last one fully applied."""

    def __init__(
        self,
        store: Store,
        sinks: Sequence[Sink],
        clock: Callable[[], datetime],
        look: Callable[[], object] = bool,
        timers: SharedTimer | None = None,
    ) -> None:
        """`look` is called before each judgement; it calls `clock_jumped` after a clock jump.

        `timers` wakes the trackers of all clusters; by default this one has its own.
        """
        self.resource_version: str | None = None
        self.counters = Counters(store.abandoned_after)
        self.counters.may_be_vacant = store.marks
        self._store = store
        self._sinks = sinks
        self._clock = clock
        self._look = look
        self._heard_at = store.heard_at
        self._gate = DeadlineGate()
        self._missed = MissedTimes(store)
        self._listing: Progress | None = None
        self._renewed: list[ObjectName] = []
        self._lags = Lags()
        self._reads = 0
        self._skipped = SkippedLog()
        self._timer_errors = TimerErrors()
        self._timers = timers or SharedTimer(clock)
        self._next = DeadlineTimer(self._timers, partial(self._timer_errors.run, self.tick))
        self._tell = partial(self._timer_errors.run, self.flush)
        self._blocked_at: datetime | None = None  # the last check found data that must be read
        store.connection = Connection(
            state=ConnectionState.CONNECTING, since=clock(), heard_at=self._heard_at
        )

    async def run(self, events: AsyncIterator[ReflectorEvent]) -> None:
        """Follow the events until they end or the task is cancelled. Raises errors of timers."""
        try:
            with self._timer_errors.raised_here():
                async for event in events:
                    self.handle(event)
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop the timers, and send the collected renewals."""
        self._next.stop()
        self._timers.drop(self._tell)
        self.flush()

    @property
    def listing(self) -> bool:
        return self._listing is not None

    @property
    def watched_until(self) -> datetime:
        """Until when everything is known: now, while live and up to date."""
        now, connection = self._clock(), self._store.connection
        if connection.state is not ConnectionState.LIVE:
            return connection.heard_at or now
        return min(self._store.behind or now, now - self._gate.unprocessed)

    def unprocessed_seconds(self) -> float:
        """How many seconds received data may have waited. Any thread may call it."""
        return self._gate.unprocessed.total_seconds()

    def lag_seconds(self, now: datetime) -> float:
        """Return how old the newest event taken from the watch is while more wait, else 0."""
        if self._store.connection.state is not ConnectionState.LIVE:
            return 0.0
        return self._lags.behind(now, self.unprocessed_seconds())

    def handle(self, event: ReflectorEvent) -> None:
        self._look()
        now = self._clock()
        self._missed.known_version(self.resource_version)
        if self._gate.since is not None and self._next.overdue(now):
            self._stood_still(self._next.take_planned() or now, now)
        match event:
            case Arrived():
                self._follow(event.events, now)
            case Applied() | Renewed() | Deleted() | Bookmark():
                self._follow((event,), now)
            case Replayed():
                self._missed.read(len(event.events))
                self._deliver(self._store.follow(event.events, now, inferred=True))
                self.resource_version = event.events[-1].resource_version
            case ListPage() | Listed():
                self._list(event, now)
            case Connected():
                self._connected(event, now)
            case Disconnected():
                self.counters.breaks += event.paused_at is None
                self._disconnected(event, now)
        if self._blocked_at is None:
            self._wait_for_deadline(now)
        else:
            passed, self._blocked_at = abs(now - self._blocked_at), None
            self._next.stop()
            self._wait_for_deadline(now, at_least=max(timedelta(0), BETWEEN_TURNS - passed))

    def set_overrides(self, kinds: Kinds, marks: Marks = NO_MARKS) -> None:
        """Apply these kinds and marks of admins, and the rules to all other Leases."""
        self._deliver(self._store.set_overrides(kinds, now := self._clock(), marks))
        self._wait_for_deadline(now)

    def settle_kinds(self) -> None:
        """Settle the guessed kinds of Leases that one holder has renewed for long."""
        update = self._store.settle_kinds(now := self._clock())
        if update is not None:
            self._deliver(update)
            self._wait_for_deadline(now)

    def clock_jumped(self, jump: Jump) -> None:
        """Move all times after the wall clock was set, and continue."""
        stands = self._store.clock_jumped(jump)
        self._gate.clock_jumped(jump)
        self._missed.clock_jumped(jump)
        self._heard_at = moved(self._heard_at, jump.by)
        if self._listing is not None:
            self._listing.clock_jumped(jump)
        self._lags.forget()
        self.counters.clock_jumped(jump)
        self._emit(stands)
        self._next.forget()
        self._wait_for_deadline(jump.after)

    def stood_still(self, since: datetime) -> None:
        """The machine slept since then: events report the past for a while."""
        if self._gate.since is not None:
            self._next.forget()
            self._stood_still(since, now := self._clock())
            self._wait_for_deadline(now)  # nothing may come from a quiet cluster

    def tick(self) -> None:
        """Judge what is due. The timer calls it; while not live it judges nothing."""
        self._look()
        now = self._clock()
        # If the process stood still or cannot keep up, events report the past.
        planned = self._next.take_planned()
        behind = self._gate.behind(now, planned)
        if behind is not None and behind == planned:
            self._stood_still(behind, now)
        elif behind is not None:
            self._catch_up(behind, now)
        until, wait = self._gate.until(now), BETWEEN_TURNS
        if until is not None and self._gate.catching_up:
            self._gate.caught_up()
            self._store.caught_up()
            self._emit_missed(self._missed.caught_up(now, self.resource_version), now)
        elif until is None and (until := self._gate.followed_until(now)) is not None:
            self._store.follows(until)
        if until is not None:
            alive = self._gate.alive_until(now)
            self._deliver(self._store.turn(now, by=until, alive=alive))
            due = self._store.next_deadline()
            if self._store.unsure:
                self._gate.look()
            elif due is not None and due <= until:
                wait = BETWEEN_PARTS
            elif due is not None and due <= now:
                wait, self._blocked_at = UNTIL_READ, now
        self._wait_for_deadline(now, at_least=wait)

    def flush(self) -> None:
        """Send the collected renewals."""
        keys = tuple(self._renewed)
        self._renewed.clear()
        store = self._store
        now = self._clock()
        delay, lag = self._lags.note(keys, store.get, now), self.lag_seconds(now)
        told = store.connection
        store.connection = msgspec.structs.replace(
            told,
            heard_at=self._heard_at,
            behind_seconds=max(lag, delay or 0.0) if lag else delay,
            lag_seconds=lag,
        )
        if lag:  # say so until nothing waits, whatever arrives
            self._timers.collect(self._tell)
        if told.is_behind != store.connection.is_behind:
            self._emit(store.connect(store.connection, now))
        if keys:
            self._emit(Update(cluster=store.cluster, now=now, seq=store.seq, renewed=keys))

    def _follow(self, events: Sequence[WatchEvent], now: datetime) -> None:
        self._heard_at = now
        bookmarks = [type(event) for event in events].count(Bookmark)
        self.counters.bookmarks += bookmarks
        self.counters.events += len(events) - bookmarks
        self._missed.read(len(events) - bookmarks)
        waiting = self.unprocessed_seconds() >= WAITS
        if waiting or self._reads % USUAL_EVERY == 0:
            self._lags.took(events, now, waiting=waiting)
        self._reads += 1
        if waiting:
            self._timers.collect(self._tell)
        self._deliver(self._store.follow(events, now))
        self.resource_version = events[-1].resource_version
        if not isinstance(events[-1], Bookmark):
            self._gate.arrived(events, now)
            self._store.silences.wrote(now)

    def _list(self, page: ListPage | Listed, now: datetime) -> None:
        """Apply a page of a list. Its progress is shown as the state of the connection."""
        if self._heard_at is not None:
            self._store.lost(self._heard_at)
        if self._listing is None or self._listing.resource_version != page.resource_version:
            self._listing = Progress(self._store.cluster, page.resource_version, now)
        sentence = self._listing.step(page, now)
        if isinstance(page, ListPage):
            self._deliver(self._store.enter(page, now))
            if sentence is not None:
                old = self._store.connection
                self._connect(old.state, old.since, sentence)
            return
        self._heard_at, self._listing = now, None
        self._missed.listed()
        self.counters.lists[page.reason] += 1
        self._deliver(self._store.replace(page, now))
        self.resource_version = page.resource_version

    def _connected(self, event: Connected, now: datetime) -> None:
        self._heard_at = now
        if event.listed_seconds:
            self._store.lost(now - span(event.listed_seconds))
        self._store.resumed(now)
        self._store.silences.connected(now)
        self._gate.connected(now, event.unprocessed_seconds, event.silent_seconds, event.look)
        missed = self._missed.ended(now)
        if missed is not None:
            self._store.missed(missed)
        self._connect(ConnectionState.LIVE, now, missed=missed)

    def _disconnected(self, event: Disconnected, now: datetime) -> None:
        if event.paused_at is not None and self._store.connection.state is ConnectionState.LIVE:
            # It did not break: until then all is known.
            self._heard_at = min(self.watched_until, self._gate.alive_until(now))
        self._gate.lost()
        self._missed.begins(self._heard_at, self.resource_version, Missing.LOST)
        if event.paused_at is None and not event.refused:
            self._missed.failed(now)
        self._store.silences.lost()
        self._listing = None
        if self._heard_at is not None:
            self._store.lost(self._heard_at)
            self._deliver(self._store.take_back_late(self._heard_at, now))
        if event.paused_at is not None:
            self._connect(ConnectionState.PAUSED, event.paused_at, event.detail)
        elif event.refused:
            self._connect(ConnectionState.REFUSED, now, event.detail)
        elif self._heard_at is None:
            self._connect(ConnectionState.CONNECTING, now, event.detail)
        else:
            self._connect(ConnectionState.STALE, self._heard_at, event.detail)

    def _connect(
        self,
        state: ConnectionState,
        since: datetime,
        detail: str = "",
        missed: MissedTime | None = None,
    ) -> None:
        """Publish the state of the watch if it changed, with what was missed before."""
        old = self._store.connection
        if old.state is state:
            since = old.since
        new = Connection(state=state, since=since, detail=detail, heard_at=self._heard_at)
        if (new.state, new.since, new.detail) != (old.state, old.since, old.detail):
            update = self._store.connect(new, self._clock())
            self._emit(msgspec.structs.replace(update, missed=missed))

    def _deliver(self, update: Update | None) -> None:
        """Collect plain renewals; send everything else at once."""
        if update is None:
            return
        if (
            update.changes
            or update.redraw
            or update.removed
            or update.listed
            or update.skipped
            or update.late
        ):
            self._emit(update)
            return
        self._renewed += update.renewed
        self._timers.collect(self._tell)

    def _emit(self, update: Update) -> None:
        self.counters.count(update)
        if update.skipped:
            self._skipped.note(update)
        for sink in self._sinks:
            try:
                sink(update)
            except Exception:
                logger.exception("%s: a sink failed; the watch goes on", update.cluster)

    def _wait_for_deadline(self, now: datetime, *, at_least: timedelta = timedelta(0)) -> None:
        """Set the one timer to the next deadline; none while nothing may be judged."""
        since, due = self._gate.since, self._store.next_deadline()
        if since is None or (due is None and not self._gate.catching_up):
            self._next.stop()
            return
        if self._gate.catching_up:
            due = min(since, now + GRACE)
        elif due is None or due < since:
            due = since
        self._next.plan(due, now, at_least=at_least)

    def _stood_still(self, since: datetime, now: datetime) -> None:
        """Nothing could run since then: that time was not watched."""
        self._gate.stood_still(since, now)
        if now - since > STOOD_STILL:
            self._missed.begins(since, self.resource_version, Missing.STOOD_STILL)
            self._emit_missed(self._missed.ended(now), now)
        # The check that did not come was planned so long before: events may report that time too.
        planned_at = since - MAX_WAIT
        heard_at = self._heard_at or planned_at
        self._catch_up(min(since, max(heard_at, planned_at)), now)

    def _emit_missed(self, missed: MissedTime | None, now: datetime) -> None:
        if missed is not None:
            store = self._store
            self._store.missed(missed)
            self._emit(Update(cluster=store.cluster, now=now, seq=store.seq, missed=missed))

    def _catch_up(self, since: datetime, now: datetime) -> None:
        self._store.lost(since)
        self._store.resumed(now)
        self._store.silences.stood_still(since, now)
        self._gate.resumed(now)
