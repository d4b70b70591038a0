"""History is kept as long, and as short, as it was asked to be kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from dashboard.serving.tasks.retention import Forgetting
from leases import models
from leases.domain.lease import ObjectName
from leases.history.write.recorder import Recorder, StateSource
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

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
    assert await forgetting.run(T0 + DAY + timedelta(seconds=25)) == 2
    await recorder.flush()
    assert await kept() == [20, 30, 40]
    assert await forgetting.run(T0 + DAY + timedelta(seconds=35)) == 1
    assert await kept() == [30, 40]


async def test_rows_beyond_the_limit_are_deleted(recorder):
    await keep(*range(10))
    assert await Forgetting(recorder, days=1, rows=4).run(T0) == 5
    assert await kept() == [5, 6, 7, 8, 9]
