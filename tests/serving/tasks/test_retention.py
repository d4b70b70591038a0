"""History is kept as long, and as short, as it was asked to be kept."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from dashboard.serving.tasks import history_upkeep
from dashboard.serving.tasks.history_upkeep import Forgetting
from leases import models
from leases.domain.lease import ObjectName
from leases.history import retention
from leases.history.find_incidents import add_note, incident_of
from leases.history.recorder import Recorder, StateSource
from leases.history.write_batch import write_changes
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


def nothing(key: ObjectName) -> None:
    return None


@pytest.fixture
async def recorder():
    one = Recorder()
    one.add(StateSource("a", nothing, lambda: "7", lambda: T0))
    task = asyncio.create_task(one.run())
    yield one
    await one.close(task)


@sync_to_async
def keep(*seconds: float) -> None:
    models.ChangeRecord.objects.bulk_create([to_row(a_change(one)) for one in seconds])


@sync_to_async
def kept() -> list[float]:
    times = models.ChangeRecord.objects.order_by("at").values_list("at", flat=True)
    return [(at - T0).total_seconds() for at in times]


async def test_old_rows_are_deleted_while_new_ones_are_written(recorder):
    await keep(0, 10, 20, 30)
    forgetting = Forgetting(recorder, days=1, rows=100)
    recorder.record(cluster="a", changes=(a_change(40),))
    await sync_to_async(models.SecurityRecord.objects.create)(
        at=T0 - 365 * DAY, event="sign_in", who="ada"
    )
    assert await forgetting.run(T0 + DAY + timedelta(seconds=25)) == 2
    await recorder.flush()
    assert await kept() == [20, 30, 40]
    assert not await models.SecurityRecord.objects.aexists()
    assert await forgetting.run(T0 + DAY + timedelta(seconds=35)) == 1
    assert await kept() == [30, 40]


async def test_rows_beyond_the_limit_are_deleted(recorder):
    await keep(*range(10))
    assert await Forgetting(recorder, days=1, rows=4).run(T0) == 5
    assert await kept() == [5, 6, 7, 8, 9]


async def test_a_round_that_is_ended_waits_for_no_database_and_leaves_no_connection_open(
    recorder, monkeypatch
):
    closed, asked, may_answer = threading.Event(), threading.Event(), threading.Event()

    def counted_until(_cluster):
        asked.set()
        assert may_answer.wait(30)
        return T0

    monkeypatch.setattr(history_upkeep, "_let_go", closed.set)
    await keep(0)
    forgetting = Forgetting(recorder, days=1, rows=100, counted_until=counted_until)
    task = asyncio.create_task(forgetting.run(T0))
    assert await asyncio.to_thread(asked.wait, 30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not closed.is_set()
    may_answer.set()
    assert await asyncio.to_thread(closed.wait, 30)


@sync_to_async
def keep_incidents() -> None:
    write_changes([a_change(1)])
    ended = T0 + timedelta(seconds=41)
    store(
        incident_with(a_change(1), id="old"),
        incident_with(a_change(1), id="noted"),
        incident_with(id="withdrawn", part_of="old"),
        incident_with(a_change(1), id="goes-on", ended=None),
        incident_with(a_change(1), id="newer", began=T0 + DAY, ended=ended + DAY),
    )
    add_note("a", "noted", who="ada", at=T0, text="Do not lose this.")


@sync_to_async
def kept_incidents() -> set[str]:
    return set(models.IncidentRecord.objects.values_list("incident", flat=True))


async def test_incidents_outlive_their_changes_by_a_year(recorder, monkeypatch):
    await keep_incidents()
    forgetting = Forgetting(recorder, days=1, rows=100)
    await forgetting.run(T0 + 9 * DAY)
    assert await kept_incidents() == {"old", "noted", "goes-on", "newer"}
    story = (await sync_to_async(incident_of)("a", "old")).story
    assert [change.at for change in story] == [a_change(1).at]
    await forgetting.run(T0 + retention.LONGER + 1.5 * DAY)
    assert await kept_incidents() == {"noted", "goes-on", "newer"}
    monkeypatch.setattr(retention, "MAX_KEPT", 1)
    await forgetting.run(T0)
    assert await kept_incidents() == {"noted", "goes-on", "newer"}
    monkeypatch.setattr(retention, "BATCH", 1)
    await sync_to_async(store)(incident_with(id="newest", began=T0 + 2 * DAY))
    await forgetting.run(T0)
    assert await kept_incidents() == {"noted", "goes-on", "newest"}


async def test_a_database_that_is_away_is_one_line_of_the_log(recorder, monkeypatch, caplog):
    def refuse(*_: object) -> None:
        raise OperationalError("no route")

    monkeypatch.setattr(retention, "cut_of_rows", refuse)
    assert await Forgetting(recorder, days=1, rows=4).run(T0) == 0
    (said,) = [record for record in caplog.records if "no route" in record.getMessage()]
    assert said.exc_info is None
