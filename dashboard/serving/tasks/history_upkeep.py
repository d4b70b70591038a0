"""Tasks that keep history: the totals of days, and how long changes are kept."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, connection

from dashboard.parts.formatting import age, when
from dashboard.serving.tasks.clock_watch import ClockWatch
from dashboard.watched_cluster import WatchedCluster
from leases.domain.figures import DAY, DEFAULT_ABANDONED_AFTER, Period, first_day
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.history import retention
from leases.history.database import AWAY
from leases.history.find_changes import known_clusters
from leases.history.recorder import Recorder
from leases.history.refused_rows import forget_refused
from leases.history.reliability import (
    CountedDay,
    batches,
    count,
    counted_day,
    finish_day,
    forget_rows,
    is_final,
    names_of,
    next_day,
    old_rows,
    save_day,
    save_near_misses,
    save_sums,
    step_of,
    sums_by_namespace,
)
from leases.tracking.store import Store

logger = logging.getLogger(__name__)

MIN_SECONDS, MAX_SECONDS = 60.0, 600.0  # from one count to the next
SHARE = 100  # times the length of a count is the wait until the next
STALLED = timedelta(minutes=15)  # since the end of a count: it does not go on as it should
PAUSE = 0.02  # seconds between two writes, in which changes are written
HOUR = timedelta(hours=1)

Look = Callable[..., Awaitable[Any]]
Trusted = Callable[[], Awaitable[bool]]


async def _always() -> bool:
    return True


def _unless(clock: ClockWatch) -> Trusted:
    """The clock as far as its jumps tell."""

    async def trusted() -> bool:
        return not clock.doubtful

    return trusted


def wait_after(took: float, last: float) -> float:
    """How many seconds after a count the next one begins, `last` after the one before it.

    A single count may take long because the machine was busy, as at a start, or stood still: the
    wait grows to twice the last one at most.
    """
    return min(MAX_SECONDS, max(MIN_SECONDS, min(SHARE * took, 2 * last)))


class CountTimes:
    """When reliability is counted, and what a reader should know of it. For any thread."""

    def __init__(
        self, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._monotonic = monotonic
        self._wait = MIN_SECONDS / 2
        self._took = 0.0
        self._why: str | None = None  # the last count failed
        self._began: float | None = None  # the count that runs
        self._due: float | None = None  # the next count
        self._counted = monotonic()  # the end of the last count that did not fail

    def begin(self) -> None:
        self._began, self._due = self._monotonic(), None

    def end(self, why: str | None) -> float:
        """A count is over; `why` it failed. Returns the seconds until the next one."""
        now = self._monotonic()
        self._took, self._began, self._why = now - (self._began or now), None, why
        if why is None:
            self._counted = now
        self._wait = wait_after(self._took, self._wait)
        self._due = now + self._wait
        return self._wait

    def died(self) -> None:
        """Its task ended in the middle: others say so."""
        self._began = None

    @property
    def says(self) -> str | None:
        """Why the totals are older than a minute, or will be; None: they are not."""
        began, due, now = self._began, self._due, self._monotonic()
        if began is not None and now - began > MIN_SECONDS:
            return f"A count that began at {self._when(began)} UTC goes on"
        if due is None:
            return None
        if self._why is not None:
            return f"{self._why}: it is tried again at {self._when(due)} UTC"
        if self._wait > MIN_SECONDS:
            took = age(self._took)
            return f"The last count took {took}: the next one begins at {self._when(due)} UTC"
        return None

    @property
    def stalled(self) -> str | None:
        """What every page and `/readyz` say of totals that do not go on."""
        if self._monotonic() - self._counted < STALLED.total_seconds():
            return None
        more = f" {says}." if (says := self.says) else ""
        return f"Reliability has not been counted since {self._when(self._counted)} UTC.{more}"

    def _when(self, moment: float) -> str:
        now = self._now()
        return when(now + timedelta(seconds=moment - self._monotonic()), now)


class ReliabilityTotals:
    """Reads in a thread of its own and writes in the recorder's, between its writes."""

    def __init__(
        self,
        clusters: Mapping[str, WatchedCluster],
        recorder: Recorder,
        clock: ClockWatch,
        *,
        days: int,
        trusted: Trusted | None = None,
    ) -> None:
        """`days`: how long totals are kept. `trusted` says whether to go by the clock."""
        self._clusters = clusters
        self._recorder = recorder
        self._clock = clock
        self._days = timedelta(days=days)
        self._forgotten: dict[str, date] = {}  # the day before which no total is kept any more
        self._trusted = trusted or _unless(clock)
        self.counted = asyncio.Event()  # once: what retention waits for after a start
        self.times = CountTimes(clock.now)

    async def run(self) -> None:
        while True:
            wait = await self.count_in_time()
            await asyncio.sleep(wait)

    async def count_in_time(self) -> float:
        """Count, and return the seconds until the next count."""
        self.times.begin()
        warning = asyncio.get_running_loop().call_later(STALLED.total_seconds(), self._warn)
        try:
            why = await self.count(self._clock.now())
        except BaseException:
            self.times.died()
            raise
        finally:
            warning.cancel()
        self.counted.set()
        wait = self.times.end(why)
        if why is None and (says := self.times.says):
            logger.info("Reliability: %s.", says)
        return wait

    def _warn(self) -> None:
        if self.times.stalled:
            logger.warning("%s", self.times.stalled)

    async def count(self, now: datetime) -> str | None:
        """Count from the first day that is not final up to now, in all clusters. Returns why it
        could not.
        """
        with _ended(ThreadPoolExecutor(1, thread_name_prefix="reliability")) as look:
            try:
                if not await self._trusted():
                    logger.warning("Reliability is not counted: the clock may be wrong")
                    return "The clock of this server may be wrong"
                clusters = await look(known_clusters)
                found = [await self._count_cluster(one, now, look) for one in clusters]
                return next(filter(None, found), None)
            except (DatabaseError, *AWAY) as error:
                logger.warning("Reliability cannot be counted just now: %s", error)
                return f"The database did not let it be counted ({type(error).__name__})"

    async def _count_cluster(self, cluster: str, now: datetime, look: Look) -> str | None:
        """Returns why it could not be counted."""
        watched = self._clusters.get(cluster)
        if watched and (counts := near_miss_counts(watched.store, now)):
            await self._write(save_near_misses, cluster, counts)
        day, today = await look(next_day, cluster), now.date()
        if day is None:
            await self._write(finish_day, cluster, today - DAY)
            return None
        if day > today:
            return f"{cluster} was counted for good until {day}, by a clock that was ahead"
        while day <= today:
            await self._count_day(cluster, day, now, look)
            if await look(is_final, cluster, day, now):
                await self._write(finish_day, cluster, day)
            day += DAY
        await self._forget(cluster, today - self._days, look)
        return None

    async def _forget(self, cluster: str, before: date, look: Look) -> None:
        """Forget the totals of before that day, once."""
        if self._forgotten.get(cluster) == before:
            return
        for numbers in await look(old_rows, cluster, before):
            await self._write(forget_rows, numbers)
        self._forgotten[cluster] = before

    async def _count_day(self, cluster: str, day: date, now: datetime, look: Look) -> None:
        watched = self._clusters.get(cluster)
        present, after = None, DEFAULT_ABANDONED_AFTER
        if watched is not None:
            elections = watched.store.select((Kind.ELECTION,), tuple(Phase))
            present, after = [one.key for one in elections], watched.store.abandoned_after
        names = names_of(cluster, day, present)
        keys = await look(next, names, None)
        if keys is None:
            return
        counted: CountedDay = await look(
            partial(counted_day, cluster, day, now, abandoned_after=after)
        )
        while keys is not None:
            found = await look(count, counted, keys, partial(_kind_now, watched))
            for some in batches(found):
                await self._write(save_day, cluster, day, counted.stretch.until, some)
            keys = await look(next, names, None)
        for period in Period:
            rows = await look(sums_by_namespace, cluster, period, first_day(period, day))
            for some in batches(rows):
                await self._write(save_sums, some)

    async def _write(self, work: Callable[..., Any], *given: Any) -> None:
        await self._recorder.in_thread(partial(work, *given))
        await asyncio.sleep(PAUSE)


def _kind_now(watched: WatchedCluster | None, key: ObjectName) -> Kind | None:
    tracked = None if watched is None else watched.store.get(key)
    return None if tracked is None else tracked.kind


def near_miss_counts(store: Store, now: datetime) -> Counter[tuple[datetime, ObjectName]]:
    """Count the near misses of the last hour by step and Lease."""
    return Counter((step_of(one.at), one.key) for one in store.near_misses(now - HOUR))


@contextmanager
def _ended(thread: ThreadPoolExecutor) -> Iterator[Look]:
    """What runs a call in the thread. It ends after the last call, and its connection with it;
    nobody waits for that, not for a call that hangs when a task is cancelled either.
    """
    try:
        yield partial(asyncio.get_running_loop().run_in_executor, thread)
    finally:
        thread.submit(_let_go)
        thread.shutdown(wait=False)


def _let_go() -> None:
    """Close the connection of the thread that runs this."""
    connection.close()


ALL = datetime.max.replace(tzinfo=UTC)
RETENTION_PAUSE = 0.02  # seconds between two batches, in which changes are written


class Forgetting:
    """What may go is looked for in a thread of its own, and forgotten in the recorder's, between
    its own writes."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        days: int,
        rows: int,
        trusted: Trusted | None = None,
        counted_until: Callable[[str], datetime] = lambda _: ALL,
    ) -> None:
        """`trusted` says whether the clock is right, so that the age of rows is known.
        `counted_until`: the moment from which the totals of a cluster still need its changes.
        """
        self._recorder = recorder
        self._days = timedelta(days=days)
        self._rows = rows
        self._trusted = trusted or _always
        self._counted_until = counted_until
        self._reached: dict[str, datetime] = {}  # the cut up to which all is done

    async def run(self, now: datetime) -> int:
        """One round; how many changes it forgot. What fails is tried again in the next."""
        total, old = 0, now - self._days
        with _ended(ThreadPoolExecutor(1, thread_name_prefix="forgetting")) as look:
            try:
                if not await self._trusted():
                    logger.warning("No old changes are forgotten: the clock may be wrong")
                    return 0
                await self._recorder.in_thread(partial(forget_refused, old))
                gone = 1
                while gone:
                    gone = await self._recorder.in_thread(partial(retention.forget_security, now))
                    await asyncio.sleep(RETENTION_PAUSE)
                cut = max(old, await look(retention.cut_of_rows, self._rows) or old)
                for cluster in await look(known_clusters):
                    counted = await look(self._counted_until, cluster)
                    total += await self._forget(cluster, min(cut, counted), look)
                    watches = min(old, counted)
                    await self._recorder.in_thread(
                        partial(retention.forget_watches, cluster, watches)
                    )
                    for batch in await look(retention.forgettable_incidents, cluster, old):
                        await self._recorder.in_thread(
                            partial(retention.forget_incidents, cluster, batch)
                        )
                        await asyncio.sleep(RETENTION_PAUSE)
            except AWAY as error:
                logger.warning("Old changes are forgotten in an hour: no answer (%s)", error)
            except DatabaseError:
                logger.exception("Old changes could not be forgotten; trying again in an hour")
        if total:
            logger.info("Forgot %d changes of before %s", total, cut.isoformat())
        return total

    async def _forget(self, cluster: str, cut: datetime, look: Look) -> int:
        batches = retention.forgettable(cluster, cut, since=self._reached.get(cluster))
        total = 0
        while (batch := await look(next, batches, None)) is not None:
            if batch:
                total += await self._recorder.in_thread(partial(retention.forget, cluster, batch))
            await asyncio.sleep(RETENTION_PAUSE)
        self._reached[cluster] = cut
        return total
