"""A jump of the clock and a sleep of the machine are noticed, reported and followed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from dashboard import clock
from dashboard.config import ClusterSpec
from dashboard.metrics import exposition
from dashboard.serving.runtime import Options, Runtime
from dashboard.serving.tasks.clock_watch import ClockWatch
from dashboard.serving.tasks.cluster_watch import ClusterWatch
from leases.domain.steady_clock import Jump, SteadyClock
from leases.domain.watched_times import Connection, ConnectionState, WatchEnd, unwatched
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.models import ChangeRecord, LeaseRecord
from leases.wire.watch_decoding import Listed
from tests.support.board import KEY, a_lease
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NOON = 1_795_176_000 * 10**9  # 2026-11-20 12:00:00


class Machine:
    """Three clocks, moved by hand; seconds."""

    def __init__(self) -> None:
        self.passed = self.slept = self.ahead = 0
        self.clock = SteadyClock(wall=lambda: NOON + self.ahead + self.passed, passed=self._passed)
        self.watch = ClockWatch(
            self.clock, passed=self._passed, running=lambda: self.passed - self.slept
        )

    def _passed(self) -> int:
        return self.passed

    def goes_on(self, length: timedelta) -> None:
        self.passed += length // timedelta(microseconds=1) * 1000

    def sleeps(self, length: timedelta) -> None:
        self.goes_on(length)
        self.slept += length // timedelta(microseconds=1) * 1000

    def is_set(self, by: timedelta) -> None:
        self.ahead += by // timedelta(microseconds=1) * 1000
        self.watch.look()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_jump_reaches_its_receivers_at_once(machine):
    jumps: list[Jump] = []
    machine.watch.on_jump.append(jumps.append)
    machine.is_set(HOUR)
    machine.watch.look()
    assert [jump.by for jump in jumps] == [HOUR]
    assert jumps[0].after == machine.watch.now()
    assert machine.watch.jumps == 1


def test_pages_say_what_happened_and_when_for_ten_minutes(machine, caplog):
    assert machine.watch.says is None
    with caplog.at_level(logging.WARNING):
        machine.is_set(HOUR)
    said = machine.watch.says
    assert said.startswith(
        "The clock of this server was set forward by 1 h 0 m, from 12:00:00 to 13:00:00 UTC."
    )
    assert said in caplog.text
    machine.goes_on(9 * MINUTE)
    assert machine.watch.says == said
    machine.goes_on(MINUTE)
    assert machine.watch.says is None


def test_a_day_of_another_date_is_named(machine):
    machine.is_set(-timedelta(days=2))
    assert (
        "back by 2 d 0 h, from 20 Nov 2026 12:00:00 to 18 Nov 2026 12:00:00" in machine.watch.says
    )


def test_one_who_cannot_follow_does_not_keep_the_others_from_it(machine, caplog):
    def broken(_: Jump) -> None:
        raise RuntimeError("broken")

    jumps: list[Jump] = []
    machine.watch.on_jump += [broken, jumps.append]
    machine.is_set(HOUR)
    assert len(jumps) == 1
    assert "Not everything follows" in caplog.text


def test_a_far_step_ahead_is_doubted_for_a_day_or_until_it_is_taken_back(machine):
    machine.is_set(HOUR / 2)
    assert not machine.watch.doubtful
    machine.is_set(3650 * timedelta(days=1))
    assert machine.watch.doubtful
    machine.goes_on(23 * HOUR)
    assert machine.watch.doubtful
    machine.is_set(-3650 * timedelta(days=1))
    assert not machine.watch.doubtful
    machine.is_set(2 * HOUR)
    assert machine.watch.doubtful
    machine.goes_on(24 * HOUR)
    assert not machine.watch.doubtful


def test_sleep_is_no_jump_and_reports_since_when_nothing_was_watched(machine):
    since: list[datetime] = []
    machine.watch.on_sleep.append(since.append)
    began = machine.watch.now()
    machine.goes_on(MINUTE)
    machine.watch.look()
    assert since == []
    machine.sleeps(HOUR)
    machine.watch.look()
    machine.watch.look()
    assert since == [began + MINUTE]
    assert machine.watch.jumps == 0
    assert machine.watch.says is None


async def test_a_standstill_of_the_process_is_reported_since_the_last_look(machine):
    """Also where nothing can expire, so that no check of a deadline is overdue."""
    since: list[datetime] = []
    machine.watch.on_sleep.append(since.append)
    machine.goes_on(MINUTE)
    machine.watch.look()  # nobody looks regularly yet
    looking = asyncio.create_task(machine.watch.run())
    await asyncio.sleep(0)
    machine.goes_on(timedelta(seconds=2.9))
    machine.watch.look()
    assert since == []
    last = machine.watch.now()
    machine.goes_on(timedelta(seconds=20))
    machine.watch.look()
    machine.watch.look()
    assert since == [last]
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


async def test_it_looks_by_itself(machine):
    task = asyncio.create_task(machine.watch.run())
    machine.ahead = 10**13
    async with asyncio.timeout(60):
        while not machine.watch.jumps:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def process_clock(machine: Machine) -> Iterator[None]:
    """The machine's clock is the process's."""
    before = clock.use(machine.clock)
    yield
    clock.use(before)


def runtime(folder: Path) -> Runtime:
    spec = ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED))
    return Runtime(Options(clusters=(spec,), data=folder))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("process_clock")
async def test_a_step_of_ten_years_ahead_deletes_no_history(machine, tmp_path, caplog):
    running = runtime(tmp_path)
    await ChangeRecord.objects.abulk_create([to_row(a_change(0))])
    writing = asyncio.create_task(running.recorder.run())
    machine.ahead = 3650 * 86400 * 10**9
    running.clock.look()
    running.reliability.counted.set()  # retention waits for it
    forgetting = asyncio.create_task(running._forget())
    async with asyncio.timeout(60):
        while "No old changes are forgotten" not in caplog.text:
            await asyncio.sleep(0.01)
    forgetting.cancel()
    await asyncio.gather(forgetting, return_exceptions=True)
    assert await running.recorder.in_thread(ChangeRecord.objects.count) == 1
    await running.recorder.close(writing)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("process_clock")
async def test_a_runtime_that_watches_nothing_looks_too(machine, tmp_path):
    running = Runtime(Options(clusters=(), data=tmp_path))
    running._start_tasks()
    try:
        machine.ahead = 3600 * 10**9
        async with asyncio.timeout(60):
            while not running.clock.jumps:
                await asyncio.sleep(0.01)
    finally:
        await running.stop()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("process_clock")
async def test_every_state_is_written_with_its_new_moments(machine, tmp_path):
    running = runtime(tmp_path)
    cluster = running.clusters["a"]
    watch = ClusterWatch(
        cluster,
        recorder=running.recorder,
        publisher=running.publisher,
        incidents=running.incidents["a"],
        clock=running.clock,
        timers=running.timers,
        kubeconfig=(),
    )
    await watch.prepare()
    watch.tracker.handle(Listed((a_lease(now=clock.now()),), "7"))
    await running.recorder.flush()
    machine.ahead = 3600 * 10**9
    running.clock.look()
    await running.recorder.flush()
    (row,) = await running.recorder.in_thread(lambda: list(LeaseRecord.objects.all()))
    assert running.incidents["a"].begins_anew
    known = cluster.store.get(KEY)
    assert json.loads(bytes(row.tracked))["observed_at"].startswith("2026-11-20T13:")
    assert known.observed_at == datetime.fromisoformat("2026-11-20T13:00:00+00:00")
    watch.tracker.stop()
    await running.recorder.close(asyncio.create_task(running.recorder.run()))


@pytest.mark.usefixtures("process_clock")
def test_the_runtime_passes_it_to_history_pages_and_metrics(machine, tmp_path):
    running = runtime(tmp_path)
    stands = Connection(state=ConnectionState.LIVE, since=clock.now())
    running.recorder.watches.record("a", stands)
    machine.goes_on(MINUTE)
    machine.ahead = 3600 * 10**9
    running.clock.look()
    now = clock.now()
    first, second = running.recorder.watches.take("a", now)
    assert (first.since, first.until) == (stands.since, stands.since + MINUTE)
    assert first.ended is WatchEnd.LOST
    assert first.detail == "The clock of this server was set forward by 1 h 0 m."
    assert (second.since, second.until) == (now, now)
    (span,) = unwatched((first, second), since=stands.since, until=now)
    assert (span.since, span.until) == (stands.since + MINUTE, now)
    assert "set forward by 1 h 0 m" in (running.problem("a") or "")
    assert "leaseboard_clock_jumps_total 1.0" in exposition(running, elections=1, now=now)
