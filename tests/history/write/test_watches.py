"""When a cluster was watched is written beside its changes."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState, WatchEnd
from leases.history import watched_spans
from leases.history.recorder import Recorder, StateSource
from leases.history.watched_spans import unwatched_times
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db(transaction=True)


def at(seconds: float):
    return T0 + timedelta(seconds=seconds)


def live(seconds: float) -> Connection:
    return Connection(state=ConnectionState.LIVE, since=at(seconds))


def stale(seconds: float, detail: str) -> Connection:
    return Connection(
        state=ConnectionState.STALE, since=at(seconds), heard_at=at(seconds), detail=detail
    )


class Run:
    """One process that records cluster `a`; `seconds` is its clock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.recorder = Recorder()
        self.recorder.add(StateSource("a", nothing, lambda: "7", lambda: at(self.seconds)))

    def record(self, connection: Connection) -> None:
        self.recorder.watches.record("a", connection)

    async def write(self, seconds: float) -> None:
        self.seconds = seconds
        self.recorder.record(cluster="a", changes=(a_change(int(seconds)),))
        await self.recorder.flush()

    async def stop(self) -> None:
        await self.recorder.close(asyncio.create_task(self.recorder.run()))

    async def kill(self) -> None:
        await self.recorder.in_thread(let_go)


def nothing(key: ObjectName) -> None:
    return None


def let_go() -> None:
    from django.db import connection

    connection.close()


async def times(until: float, now: float):
    find = sync_to_async(unwatched_times)
    found = await find("a", since=at(0), until=at(until), now=at(now))
    return [
        (round((g.since - T0).total_seconds()), round((g.until - T0).total_seconds()), g.ended)
        for g in found
    ]


async def test_starts_disconnections_and_stops_are_remembered():
    run = Run()
    run.record(live(10))
    await run.write(20)
    run.record(stale(25, "no route to host"))
    run.record(live(40))
    await run.write(50)
    run.seconds = 60
    await run.stop()
    assert await times(100, now=200) == [
        (0, 10, None),
        (25, 40, WatchEnd.LOST),
        (60, 100, WatchEnd.STOPPED),
    ]


async def test_a_process_that_was_killed_had_watched_until_its_last_word():
    run = Run()
    run.record(live(0))
    await run.write(30)
    await run.kill()
    assert await times(100, now=35) == []
    assert await times(100, now=100) == [(30, 100, WatchEnd.CUT)]


async def test_a_replica_that_watches_leaves_no_doubt():
    first, second = Run(), Run()
    first.record(live(0))
    second.record(live(5))
    await first.write(10)
    await first.kill()
    await second.write(90)
    await second.kill()
    assert await times(90, now=90) == []


async def test_the_future_is_not_unwatched():
    run = Run()
    run.record(live(0))
    await run.write(30)
    await run.kill()
    assert await times(1000, now=31) == []


def test_a_watch_that_breaks_without_end_takes_no_memory_without_end(monkeypatch):
    monkeypatch.setattr(watched_spans, "MAX_CLOSED", 3)
    log = watched_spans.WatchLog()
    for second in range(0, 100, 2):
        log.record("a", live(second))
        log.record("a", stale(second + 1, "broke"))
    kept = log.take("a", at(100))
    assert [span.since for span in kept] == [at(94), at(96), at(98)]
