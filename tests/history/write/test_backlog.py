"""A database that takes nothing: changes wait, up to a limit, and are written when it is back."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from leases import models
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState, WatchEnd
from leases.history import recorder
from leases.history.recorder import Recorder, StateSource
from leases.history.watched_spans import unwatched_times
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db(transaction=True)


READ_ONLY = {
    "sqlite": "PRAGMA query_only = {}",
    "postgresql": "SET default_transaction_read_only = {}",
}


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
async def running(monkeypatch, clock):
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.05,))
    one = Recorder(most_waiting=10)
    one.add(StateSource("a", nothing, lambda: "7", lambda: at(clock[0])))
    one.watches.record("a", Connection(state=ConnectionState.LIVE, since=T0))
    task = asyncio.create_task(one.run())
    yield one
    await one.close(task)


def nothing(key: ObjectName) -> None:
    return None


def at(seconds: float):
    return T0 + timedelta(seconds=seconds)


async def fail(running) -> None:
    """From here on nothing can be written; the first change finds out."""
    await running.in_thread(partial(read_only, "on"))
    running.record(cluster="a", changes=(a_change(1),))
    await until(lambda: running.problem is not None)


async def mend(running) -> None:
    await running.in_thread(partial(read_only, "off"))
    await until(lambda: running.problem is None and not running.waiting)


def read_only(switch: str) -> None:
    """Whether the connection of this thread may only read."""
    with connection.cursor() as cursor:
        cursor.execute(READ_ONLY[connection.vendor].format(switch))


@sync_to_async
def kept() -> list[float]:
    """Seconds of the changes in the database, by a connection of its own that may only read."""
    times = list(models.ChangeRecord.objects.order_by("at").values_list("at", flat=True))
    return [(moment - T0).total_seconds() for moment in times]


async def until(condition, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_changes_wait_and_are_written_once_when_the_disk_is_back(running):
    await fail(running)
    running.record(cluster="a", changes=tuple(a_change(n) for n in (2, 3)))
    assert re.search("read-?only", running.problem)
    assert "3 changes wait in memory." in running.problem
    assert running.waiting == 3
    await mend(running)
    assert await kept() == [1, 2, 3]


async def test_it_says_when_the_limit_is_near(running, caplog):
    await fail(running)
    with caplog.at_level(logging.WARNING):
        running.record(cluster="a", changes=tuple(a_change(n) for n in range(2, 7)))
    assert "6 changes wait in memory; from 10 on they are lost." in running.problem
    assert "of 10 that may" in caplog.text
    await mend(running)
    assert len(await kept()) == 6


async def test_changes_beyond_the_backlog_are_lost_and_their_time_counts_as_unwatched(
    running, clock
):
    await fail(running)
    running.record(cluster="a", changes=tuple(a_change(n) for n in range(2, 11)))
    clock[0] = 100
    running.record(cluster="a", changes=(a_change(100),))
    assert "as many as may; 1 later ones are lost" in running.problem
    running.record(cluster="a", changes=(a_change(101), a_change(102)))
    assert "3 later ones are lost" in running.problem
    clock[0] = 200
    await mend(running)
    running.record(cluster="a", changes=(a_change(201),))
    clock[0] = 300
    await until(lambda: not running.waiting)
    await running.flush()
    assert await kept() == [*range(1, 11), 201]
    (blind,) = await sync_to_async(unwatched_times)("a", since=T0, until=at(300), now=at(300))
    assert (blind.since, blind.until, blind.ended) == (at(100), at(200), WatchEnd.LOST)
    assert "changes were lost" in blind.detail


async def test_stopping_meanwhile_writes_nothing_that_would_hide_what_is_lost(monkeypatch):
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (60.0,))
    one = Recorder()
    one.add(StateSource("a", nothing, lambda: "7", lambda: T0))
    task = asyncio.create_task(one.run())
    await fail(one)
    one.record(cluster="a", changes=(a_change(2),))
    async with asyncio.timeout(60):
        await one.close(task)  # which waits for no further try
    assert await kept() == []
    assert await sync_to_async(models.WatchRecord.objects.count)() == 0


async def test_names_that_churn_meanwhile_are_let_go_and_no_state_outlives_its_lease(monkeypatch):
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.05,))
    lives = {ObjectName("n", name): name.encode() for name in ("stays", "goes")}
    one = Recorder(most_waiting=10)
    one.add(StateSource("a", lives.get, lambda: "7", lambda: T0, names=lambda: list(lives)))
    task = asyncio.create_task(one.run())
    one.record(cluster="a", changed=tuple(lives))
    await records(b"stays", b"goes")
    await fail(one)
    del lives[ObjectName("n", "goes")]
    one.record(cluster="a", changed=(ObjectName("n", "goes"),))
    for number in range(1000):
        one.record(cluster="a", changed=(ObjectName("n", f"churns-{number}"),))
    assert len(one._waiting["a"]._changed) <= 11
    assert "the names of deleted ones are not kept" in one.problem
    assert "nothing is lost by it" in one.problem
    await mend(one)
    one.record(cluster="a", changed=(ObjectName("n", "stays"),))
    await records(b"stays")
    await one.close(task)


async def records(*expected: bytes) -> None:
    """Wait until these are the states that are stored."""
    async with asyncio.timeout(60):
        while await stored() != sorted(expected):
            await asyncio.sleep(0.01)


@sync_to_async
def stored() -> list[bytes]:
    return sorted(map(bytes, models.LeaseRecord.objects.values_list("tracked", flat=True)))
