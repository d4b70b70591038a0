"""The recorder: nothing lost, nothing doubled, states in step with changes."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from django.db import OperationalError

from leases import models
from leases.domain.change import ChangeType
from leases.history import recorder, write_batch
from leases.history.recorder import Recorder, StateSource
from tests.support.recording import KEY, in_thread, until
from tests.support.values.changes import T0, a_change, remembered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def states():
    """The present state of each Lease, as a tracker would have it."""
    return {KEY: b'{"v":1}'}


@pytest.fixture
async def running(states):
    one = Recorder()
    version = {"a": "7"}
    one.add(StateSource("a", states.get, lambda: version["a"], lambda: T0))
    task = asyncio.create_task(one.run())
    yield one
    if not task.done():
        await one.close(task)


async def test_a_change_is_written_with_its_state_and_how_far_the_watch_got(running):
    running.record(cluster="a", changes=(a_change(),), changed=(KEY,))
    await until(lambda: models.ChangeRecord.objects.count() == 1)
    assert await in_thread(remembered) == ((b'{"v":1}',), "7", T0)


async def test_the_same_change_twice_is_kept_once(running):
    running.record(cluster="a", changes=(a_change(), a_change()))
    await until(lambda: models.ChangeRecord.objects.count() == 1)
    running.record(cluster="a", changes=(a_change(), a_change(1)))
    await until(lambda: models.ChangeRecord.objects.count() == 2)


async def test_closing_writes_what_is_queued(states):
    one = Recorder()
    one.add(StateSource("a", states.get, lambda: "7", lambda: T0))
    task = asyncio.create_task(one.run())
    one.record(cluster="a", changes=tuple(a_change(n) for n in range(5)))
    await one.close(task)
    assert await in_thread(models.ChangeRecord.objects.count) == 5


@pytest.fixture
def rare(monkeypatch):
    """Writes a minute apart while changes keep coming, and moments apart while none does."""
    monkeypatch.setattr(recorder, "WRITE_EVERY", 60.0)
    monkeypatch.setattr(recorder, "STATE_DELAY", 0.02)


async def test_changes_that_keep_coming_gather_and_closing_does_not_wait_for_more(rare, states):
    one = Recorder()
    one.add(StateSource("a", states.get, lambda: "7", lambda: T0))
    task = asyncio.create_task(one.run())
    one.record(cluster="a", changes=(a_change(),))
    await until(lambda: models.ChangeRecord.objects.count() == 1)
    for n in (1, 2, 3):
        one.record(cluster="a", changes=(a_change(n),))
        await asyncio.sleep(2 * recorder.CHANGE_DELAY)
    assert await in_thread(models.ChangeRecord.objects.count) == 1
    async with asyncio.timeout(60):
        await one.close(task)
    assert await in_thread(models.ChangeRecord.objects.count) == 4


async def test_after_a_quiet_time_a_change_is_written_at_once(rare, running):
    await until(lambda: running.writes > 2)
    running.record(cluster="a", changes=(a_change(),))
    await until(lambda: models.ChangeRecord.objects.count() == 1)


async def test_a_lease_that_is_gone_is_forgotten(running, states):
    running.record(cluster="a", changed=(KEY,))
    await until(lambda: models.LeaseRecord.objects.count() == 1)
    del states[KEY]
    running.record(cluster="a", changes=(a_change(change=ChangeType.DELETED),), changed=(KEY,))
    await until(lambda: models.LeaseRecord.objects.count() == 0)


async def test_a_database_that_fails_is_tried_again_and_nothing_is_lost(running, monkeypatch):
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.01,))
    write, failures = write_batch._write, [OperationalError("disk I/O error")] * 3
    problems = []

    def failing(*given):
        problems.append(running.problem)
        if failures:
            raise failures.pop()
        return write(*given)

    monkeypatch.setattr(write_batch, "_write", failing)
    running.record(cluster="a", changes=(a_change(),))
    await until(lambda: models.ChangeRecord.objects.count() == 1)
    assert "disk I/O error" in problems[1]
    await until(lambda: running.problem is None)


async def test_rows_come_back_as_the_changes_they_were(running):
    change = a_change(
        fields=("leaseDurationSeconds", "labels"), inferred=True, inferred_since=T0, holder=None
    )
    running.record(cluster="a", changes=(change,))
    await until(lambda: models.ChangeRecord.objects.count() == 1)
    from leases.history.find_changes import recent

    assert await in_thread(lambda: recent("a", 5)) == [change]
    assert msgspec.json.encode(change)


async def test_a_list_is_written_once_it_is_complete(states):
    one = Recorder()
    listing = [True]
    source = StateSource("a", states.get, lambda: "7", lambda: T0, lambda: bool(listing))
    one.add(source)
    one.record(cluster="a", changes=(a_change(),), changed=(KEY,))
    await one.flush()
    assert await in_thread(models.ChangeRecord.objects.count) == 0
    listing.clear()
    await one.flush()
    assert await in_thread(models.ChangeRecord.objects.count) == 1
    task = asyncio.create_task(one.run())
    await one.close(task)


async def test_changes_do_not_wait_for_ever_where_one_list_follows_the_other(states, monkeypatch):
    one = Recorder()
    version: list[str | None] = [None]
    one.add(StateSource("a", states.get, lambda: version[0], lambda: T0, lambda: True))
    one.record(cluster="a", changes=(a_change(),), changed=(KEY,))
    monkeypatch.setattr(recorder, "LIST_FIRST", 0.0)
    await one.flush()
    assert await in_thread(models.ChangeRecord.objects.count) == 0  # the first list goes first
    version[0] = "7"
    await one.flush()
    assert await in_thread(models.ChangeRecord.objects.count) == 1
    task = asyncio.create_task(one.run())
    await one.close(task)


async def test_values_that_the_database_refuses_stop_nothing_else(running):
    odd = a_change(1, holder="a\x00b")
    endless = a_change(2, namespace="n" * 300, uid="u" * 300)
    running.record(cluster="a", changes=(odd, endless, a_change(3)), changed=(KEY,))
    await until(lambda: models.ChangeRecord.objects.filter(transitions=3).exists())
    kept = await in_thread(lambda: models.ChangeRecord.objects.get(transitions=1))
    assert kept.holder == "a\N{SYMBOL FOR NULL}b"
    await until(lambda: models.LeaseRecord.objects.count() == 1)
    assert running.problem is None
