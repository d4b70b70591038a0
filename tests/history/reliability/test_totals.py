"""The totals of days are counted from changes, outlive them, and hold them until then."""

from __future__ import annotations

import asyncio
import threading
from datetime import date, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError

from dashboard.clock import process_clock
from dashboard.serving.tasks import history_upkeep
from dashboard.serving.tasks.clock_watch import ClockWatch
from dashboard.serving.tasks.history_upkeep import CountTimes, Forgetting, ReliabilityTotals
from leases.domain.change import ChangeType
from leases.domain.figures import start_of
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history import lease_figures
from leases.history.recorder import Recorder, StateSource
from leases.history.reliability import NEVER, counted_until, finish_day, reopen, save_near_misses
from leases.models import (
    ChangeRecord,
    LeaseRecord,
    NearMissCount,
    ReliabilityRecord,
    WatchRecord,
    WatchSpan,
)
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

pytestmark = pytest.mark.django_db(transaction=True)

DAY = date(2026, 11, 20)  # a Friday
NOON = start_of(DAY) + timedelta(hours=12)
LATER = NOON + timedelta(days=4)
HOUR, WHOLE = 3600.0, 86400.0


@pytest.fixture
async def recorder():
    one = Recorder()
    one.add(StateSource("a", lambda _: None, lambda: "7", lambda: LATER))
    task = asyncio.create_task(one.run())
    yield one
    await one.close(task)


@pytest.fixture
def totals(recorder):
    return ReliabilityTotals({}, recorder, ClockWatch(process_clock()), days=1000)


def note(hours: float, change: ChangeType, **more) -> None:
    at = NOON + timedelta(hours=hours)
    known = {"at": at, "observed_at": at, "change": change, "resource_version": str(hours)}
    to_row(a_change(**(known | more))).save()


@pytest.fixture
def story(db):
    """Two elections of kube-system and a heartbeat, watched from 11:00 on the first day, but not
    from 12:00 to 18:00 on the third.
    """
    note(-1, ChangeType.CREATED)
    note(11, ChangeType.EXPIRED)  # for 3 h, over midnight
    note(14, ChangeType.TAKEN_OVER, holder="cp-2", previous_holder="cp-1")
    note(47, ChangeType.RELEASED, holder=None)  # for 4 h, the last 3 of them not watched
    note(51, ChangeType.ACQUIRED, holder="cp-3", previous_holder=None)
    note(-1, ChangeType.CREATED, name="quiet")
    note(1, ChangeType.EXPIRED, name="node", kind=Kind.HEARTBEAT)
    for name in ("scheduler", "quiet", "node"):
        LeaseRecord.objects.create(cluster="a", namespace="kube-system", name=name, tracked=b"")
    for since, until in ((-1, 48), (54, 96)):
        WatchSpan.objects.create(
            cluster="a",
            process="p",
            since=NOON + timedelta(hours=since),
            until=NOON + timedelta(hours=until),
            ended="stopped",
        )
    WatchRecord.objects.create(cluster="a", resource_version="7", watched_until=LATER)
    save_near_misses("a", {(NOON, ObjectName("kube-system", "quiet")): 3})


def stored(period: str = "day", name: str = "scheduler", namespace: str = "kube-system") -> dict:
    rows = ReliabilityRecord.objects.filter(period=period, name=name, namespace=namespace)
    return {
        (row.since - DAY).days: (
            row.gap_seconds, row.watched_seconds, row.unwatched_seconds, row.handovers,
            row.failovers, row.near_misses,
        )
        for row in rows
    }  # fmt: skip


# The gap of the second day is 2 h; that of the third is 1 h watched of its 4.
SCHEDULER = {
    0: (HOUR, 13 * HOUR, 0, 0, 0, 0),
    1: (2 * HOUR, WHOLE, 0, 1, 1, 0),
    2: (HOUR, 18 * HOUR, 6 * HOUR, 0, 0, 0),  # nobody watched who took it
    3: (0, WHOLE, 0, 0, 0, 0),
    4: (0, 12 * HOUR, 0, 0, 0, 0),
}


async def test_days_weeks_and_quarters_are_counted_and_outlive_the_changes(story, totals, recorder):
    await totals.count(LATER)
    assert await sync_to_async(stored)() == SCHEDULER
    assert await sync_to_async(stored)("week") == {
        -4: (4 * HOUR, 55 * HOUR, 6 * HOUR, 1, 1, 0),
        3: (0, 36 * HOUR, 0, 0, 0, 0),
    }
    quarter = (4 * HOUR, 91 * HOUR, 6 * HOUR, 1, 1, 0)
    assert list((await sync_to_async(stored)("quarter")).values()) == [quarter]
    of_both = (4 * HOUR, 182 * HOUR, 12 * HOUR, 1, 1, 3)
    for namespace in ("kube-system", ""):
        sums = await sync_to_async(stored)("quarter", "", namespace)
        assert list(sums.values()) == [of_both]
    assert not await sync_to_async(stored)(name="node")

    forgetting = Forgetting(recorder, days=1, rows=10_000, counted_until=counted_until)
    assert await forgetting.run(LATER + timedelta(days=30)) == 4
    await totals.count(LATER)
    assert await sync_to_async(stored)() == SCHEDULER


async def test_counting_in_pieces_and_again_after_a_kill_gives_the_same(
    story, totals, recorder, monkeypatch
):
    monkeypatch.setattr(lease_figures, "MAX_CHANGES", 2)
    for hours in range(11):
        await sync_to_async(note)(20 + hours / 1000, ChangeType.RELEASED, holder=None)
        await sync_to_async(note)(20 + hours / 1000 + 0.0001, ChangeType.ACQUIRED)
    kept, failures = recorder.in_thread, iter(range(4))

    async def in_thread(work):
        if next(failures, None) == 3:
            raise SystemError("killed")
        return await kept(work)

    monkeypatch.setattr(recorder, "in_thread", in_thread)
    with pytest.raises(SystemError):
        await totals.count(LATER)
    await totals.count(LATER)
    rows = await sync_to_async(stored)()
    assert rows[1][0] == pytest.approx(2 * HOUR + 11 * 0.36)
    assert rows[1][1:] == (pytest.approx(WHOLE), 0, 12, 1, 0)
    assert rows[2] == SCHEDULER[2]


async def test_changes_stay_until_their_day_is_counted_for_good(story, totals, recorder):
    forgetting = Forgetting(recorder, days=1, rows=1, counted_until=counted_until)
    before = await ChangeRecord.objects.acount()
    assert await forgetting.run(LATER) == 0
    await totals.count(NOON + timedelta(hours=12.5))  # half an hour after the first day
    assert await sync_to_async(counted_until)("a") == NEVER
    assert await forgetting.run(LATER) == 0
    assert await WatchSpan.objects.acount() == 2
    assert await ChangeRecord.objects.acount() == before
    await totals.count(NOON + timedelta(hours=13.5))
    assert await sync_to_async(counted_until)("a") == start_of(DAY + timedelta(days=1))
    assert await NearMissCount.objects.acount() == 0
    await totals.count(LATER)
    assert await forgetting.run(LATER) > 0


async def test_a_change_stored_days_after_its_day_is_counted(story, totals, recorder):
    """It is stored on the fourth day, twice, and happened on the second."""
    await totals.count(LATER)
    late = [
        a_change(
            change=change,
            at=NOON + timedelta(hours=hours),
            observed_at=LATER,
            holder=holder,
            resource_version=str(hours),
        )
        for hours, change, holder in (
            (20, ChangeType.RELEASED, None), (21, ChangeType.ACQUIRED, "cp-9"),
        )
    ]  # fmt: skip
    for _ in range(2):
        recorder.record(cluster="a", changes=tuple(late))
        await recorder.flush()
        assert await sync_to_async(counted_until)("a") == start_of(DAY + timedelta(days=1))
    await totals.count(LATER)
    rows = await sync_to_async(stored)()
    assert rows == SCHEDULER | {1: (3 * HOUR, WHOLE, 0, 2, 1, 0)}
    assert (await sync_to_async(stored)(name="quiet"))[0] == (0, 13 * HOUR, 0, 0, 0, 3)
    week = (await sync_to_async(stored)("week"))[-4]
    assert (week[0], week[3]) == (5 * HOUR, 2)
    assert await sync_to_async(counted_until)("a") == start_of(DAY + timedelta(days=4))


async def test_a_day_counted_while_an_earlier_one_was_reopened_is_not_final(story, totals):
    await totals.count(LATER)
    reopened, counted = NOON + timedelta(days=1), DAY + timedelta(days=3)
    await sync_to_async(reopen)("a", [NOON - timedelta(days=9), reopened, LATER], LATER)
    await sync_to_async(finish_day)("a", counted)
    assert await sync_to_async(counted_until)("a") == start_of(reopened.date())


async def test_old_totals_are_deleted(story, recorder):
    clock = ClockWatch(process_clock())
    await ReliabilityTotals({}, recorder, clock, days=1000).count(LATER)
    await ReliabilityTotals({}, recorder, clock, days=2).count(LATER)
    assert sorted(await sync_to_async(stored)()) == [2, 3, 4]
    assert sorted(await sync_to_async(stored)("week")) == [-4, 3]


async def test_old_totals_are_deleted_on_each_day(story, recorder):
    totals = ReliabilityTotals({}, recorder, ClockWatch(process_clock()), days=2)
    for days in range(3):
        await totals.count(LATER + timedelta(days=days))
        await totals.count(LATER + timedelta(days=days, hours=1))
        assert min(await sync_to_async(stored)()) == 2 + days


async def test_only_a_lease_that_is_gone_is_counted(story, totals):
    await LeaseRecord.objects.all().adelete()
    await sync_to_async(note)(86, ChangeType.DELETED, holder=None)
    await totals.count(LATER)
    assert await sync_to_async(stored)() == {
        **{day: SCHEDULER[day] for day in (0, 1, 2)},
        3: (0, WHOLE, 0, 0, 0, 0),
        4: (0, 2 * HOUR, 0, 0, 0, 0),
    }


async def test_nothing_is_counted_while_the_clock_is_in_doubt(story, recorder, monkeypatch):
    monkeypatch.setattr(ClockWatch, "doubtful", True)
    await ReliabilityTotals({}, recorder, ClockWatch(process_clock()), days=9).count(LATER)
    assert not await ReliabilityRecord.objects.aexists()


class Watch:
    """Seconds that pass as a test says."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def timed(recorder, watch):
    one = ReliabilityTotals({}, recorder, ClockWatch(process_clock()), days=9)
    one.times = CountTimes(lambda: LATER + timedelta(seconds=watch.seconds), watch)
    return one


@pytest.fixture
def lengths(timed, watch, monkeypatch):
    """How long the next counts take, in seconds."""
    some = []
    real = timed.count

    async def count(now):
        watch.seconds += some.pop(0)
        return await real(now)

    monkeypatch.setattr(timed, "count", count)
    return some


async def test_one_count_that_took_long_does_not_put_off_the_next_ones(timed, watch, lengths):
    lengths += [3.04, 0.1, 45.0, 0.1]  # a start under load, and a process that stood still in one
    waits = []
    while lengths:
        waits.append(await timed.count_in_time())
        watch.seconds += waits[-1]
    assert waits == [60, 60, 120, 60]


async def test_a_count_that_takes_long_again_and_again_is_made_less_often(
    timed, watch, lengths, caplog
):
    caplog.set_level("INFO")
    lengths += [4.0] * 5
    waits, said = [], []
    while lengths:
        waits.append(await timed.count_in_time())
        said.append(timed.times.says)
        watch.seconds += waits[-1]
    assert waits == [60, 120, 240, 400, 400]
    assert said[0] is None
    # Two counts and a wait of 60 s after noon; the next wait is 120 s.
    assert said[1] == "The last count took 4.0 s: the next one begins at 12:03:08 UTC"
    assert [line.message for line in caplog.records] == [f"Reliability: {one}." for one in said[1:]]
    assert timed.times.stalled is None


async def test_a_count_that_never_ends_is_told(timed, watch, monkeypatch, caplog):
    goes_on = threading.Event()
    monkeypatch.setattr(history_upkeep, "known_clusters", lambda: goes_on.wait(60) and ())
    monkeypatch.setattr(history_upkeep, "STALLED", timedelta(seconds=0.05))
    counting = asyncio.create_task(timed.count_in_time())
    try:
        await asyncio.sleep(0)
        assert (timed.times.says, timed.times.stalled) == (None, None)
        watch.seconds += 61
        told = timed.times.says
        assert told == "A count that began at 12:00:00 UTC goes on"
        while not caplog.records:
            await asyncio.sleep(0.01)
    finally:
        goes_on.set()
    assert await counting == 60
    since = "Reliability has not been counted since 12:00:00 UTC."
    assert caplog.messages == [f"{since} {told}."]
    assert timed.times.stalled is None


async def test_counts_that_fail_are_told(timed, watch, monkeypatch):
    def locked():
        raise InterfaceError("secret of the connection")

    monkeypatch.setattr(history_upkeep, "known_clusters", locked)
    for _ in range(15):
        assert timed.times.stalled is None
        watch.seconds += await timed.count_in_time()
    why = (
        "The database did not let it be counted (InterfaceError): it is tried again at 12:15:00 UTC"
    )
    assert timed.times.says == why
    since = "Reliability has not been counted since 12:00:00 UTC."
    assert timed.times.stalled == f"{since} {why}."
    monkeypatch.setattr(history_upkeep, "known_clusters", tuple)
    await timed.count_in_time()
    assert (timed.times.says, timed.times.stalled) == (None, None)


async def test_a_day_that_is_to_come_and_counted_for_good_is_told(story, timed):
    await sync_to_async(finish_day)("a", LATER.date() + timedelta(days=30))
    told = await timed.count(LATER)
    assert told == "a was counted for good until 2026-12-25, by a clock that was ahead"
    assert not await ReliabilityRecord.objects.aexists()


async def test_a_database_that_is_away_is_one_line_of_the_log(recorder, monkeypatch, caplog):
    def away():
        raise OperationalError("connection refused")

    monkeypatch.setattr(history_upkeep, "known_clusters", away)
    await ReliabilityTotals({}, recorder, ClockWatch(process_clock()), days=9).count(LATER)
    assert [(line.message, line.exc_info) for line in caplog.records] == [
        ("Reliability cannot be counted just now: connection refused", None)
    ]
