"""What the database refused is seen: on the overview, by admins, in the metrics, for as long as it
should be.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dashboard.clock import now as utc_now
from dashboard.serving.runtime import Runtime
from dashboard.serving.tasks.cluster_watch import ClusterWatch
from dashboard.serving.tasks.history_upkeep import Forgetting
from leases.domain.lease import ObjectName
from leases.history.recorder import Recorder
from leases.history.write_batch import write_what_fits
from leases.models import RefusedRow
from tests.support.board import KEY, a_lease, browser_of, fill, member
from tests.support.metrics import samples
from tests.support.values.batches import BEYOND, a_batch
from tests.support.values.changes import a_change

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def refused():
    """Two changes of one Lease that no database takes."""
    odd = [a_change(n, transitions=BEYOND) for n in range(2)]
    return write_what_fits(a_batch(*odd, a_change(2)))


def test_the_overview_names_the_lease_and_the_reason(board: Runtime, operator, refused):
    fill(board.clusters["a"].store, a_lease())
    assert "Missing in history" not in operator.get("/c/a/").content.decode()
    board.recorder.refused.add(refused)
    page = operator.get("/c/a/").content.decode()
    assert "Missing in history." in page
    assert f"The database refused 2 rows: {RefusedRow.objects.latest('id').error}." in page
    assert 'href="/c/a/leases/kube-system/scheduler/"' in page
    assert "Missing in history" not in operator.get("/c/b/").content.decode()


def test_a_day_later_it_needs_no_attention(board: Runtime, refused):
    board.recorder.refused.add(refused)
    now = timezone.now()
    hub = board.publisher.hubs["a"]
    assert len(hub.refused(now)) == 2
    assert hub.refused(now + timedelta(days=1, seconds=1)) == []


async def test_refused_rows_are_shown_after_a_restart(board: Runtime, refused):
    await prepared(board)
    assert len(board.publisher.hubs["a"].refused(utc_now())) == 2
    await end(board)


async def test_the_recorder_knows_which_leases_there_are(board: Runtime):
    await prepared(board)
    fill(board.clusters["a"].store, a_lease())
    source = board.recorder._sources["a"]
    assert list(source.names()) == [KEY]
    fill(board.clusters["a"].store, a_lease(), a_lease(ObjectName("default", "other")))
    assert source.size() == 2
    await end(board)


async def prepared(board: Runtime) -> None:
    watch = ClusterWatch(
        board.clusters["a"],
        recorder=board.recorder,
        publisher=board.publisher,
        incidents=board.incidents["a"],
        clock=board.clock,
        timers=board.timers,
        kubeconfig=(),
    )
    await watch.prepare()


async def end(board: Runtime) -> None:
    board._writing = asyncio.create_task(board.recorder.run())
    await board.stop()


def test_the_metrics_count_it(board: Runtime, refused):
    board.recorder.refused.add(refused)
    assert samples()["leaseboard_history_refused_total",] == 2


def test_an_admin_finds_the_whole_refused_row(board: Runtime, refused):
    ada = member("ada", "admin")
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    browser = browser_of(ada)
    row = RefusedRow.objects.latest("id")
    assert row.error[:20] in browser.get("/admin/leases/refusedrow/").content.decode()
    page = browser.get(f"/admin/leases/refusedrow/{row.pk}/change/").content.decode()
    assert str(BEYOND) in page
    assert "_save" not in page


async def test_it_goes_with_the_history_of_its_time(refused):
    recorder = Recorder()
    writing = asyncio.create_task(recorder.run())
    forgetting = Forgetting(recorder, days=1, rows=100)
    await forgetting.run(timezone.now())
    assert await RefusedRow.objects.acount() == 2
    await forgetting.run(timezone.now() + timedelta(days=2))
    assert await RefusedRow.objects.acount() == 0
    await recorder.close(writing)
