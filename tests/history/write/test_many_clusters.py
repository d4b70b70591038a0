"""All clusters are written in one transaction, and none holds up or costs for another."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from django.db import OperationalError

from leases import models
from leases.domain.lease import ObjectName
from leases.history import recorder, write_batch
from leases.history.insert_incidents import Reviewed
from leases.history.recorder import Recorder, StateSource
from leases.history.rows import story_of
from leases.history.watched_spans import LASTS
from leases.history.write_batch import let_go, write_what_fits
from tests.support.recording import KEY, in_thread, until
from tests.support.values.batches import BEYOND, a_batch
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with

pytestmark = pytest.mark.django_db(transaction=True)


def kept() -> list[tuple[str, int | None]]:
    return list(models.ChangeRecord.objects.order_by("id").values_list("cluster", "transitions"))


def reached() -> dict[str, str]:
    return dict(models.WatchRecord.objects.values_list("cluster", "resource_version"))


def a_source(cluster: str, states=lambda _: b"{}") -> StateSource:
    return StateSource(cluster, states, lambda: "7", lambda: T0)


@pytest.fixture
async def three():
    one = Recorder()
    for cluster in "abc":
        one.add(a_source(cluster))
    yield one
    await one.in_thread(let_go)


async def test_what_happens_in_all_clusters_is_one_transaction(three):
    for number, cluster in enumerate("cab"):
        three.record(cluster=cluster, changes=(a_change(number, cluster=cluster),))
    await three.flush()
    assert three.writes == 1
    assert await in_thread(kept) == [("a", 1), ("b", 2), ("c", 0)]
    assert await in_thread(reached) == dict.fromkeys("abc", "7")


@pytest.mark.parametrize(("most", "writes"), [(50, 2), (3, 3)])
async def test_the_incidents_of_all_clusters_are_one_more_transaction(
    three, monkeypatch, most, writes
):
    monkeypatch.setattr(recorder, "INCIDENTS_PER_WRITE", most)
    for number, cluster in enumerate("abc"):
        change = a_change(number, cluster=cluster)
        three.record(cluster=cluster, changes=(change,))
        incident = incident_with(change, cluster=cluster, sentence=f"of {cluster}")
        three.record_incidents(cluster, [Reviewed(incident, T0)])
    await three.flush()
    assert three.writes == writes
    marked = models.ChangeRecord.objects.order_by("id").values_list("incident", flat=True)
    assert await in_thread(lambda: list(marked)) == ["one"] * 3
    rows = models.IncidentRecord.objects.order_by("cluster")
    stored = await in_thread(lambda: [(row.cluster, row.sentence, row.story) for row in rows])
    assert [row[:2] for row in stored] == [(one, f"of {one}") for one in "abc"]
    assert [[change.cluster for _, change in story_of(row[2])] for row in stored] == [
        ["a"], ["b"], ["c"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "shares"), [([80], [200]), ([10, 10], [100, 100]), ([1300, 13, 0], [198, 1, 1])]
)
async def test_as_many_renewals_are_stored_however_many_clusters_there_are(sizes, shares):
    one, asked = Recorder(), []
    for number, size in enumerate(sizes):
        renewed = lambda most: asked.append(most) or ()  # noqa: E731
        source = a_source(f"c{number}")
        one.add(msgspec.structs.replace(source, size=lambda size=size: size, renewed=renewed))
    await one.flush()
    assert recorder.RENEWED_PER_WRITE == 200
    assert asked == shares
    await one.in_thread(let_go)


async def test_the_progress_of_many_clusters_is_written_less_often_with_more_renewals(
    three, monkeypatch
):
    asked = []
    renewed = lambda most: asked.append(most) or ()  # noqa: E731
    three.add(msgspec.structs.replace(a_source("a"), size=lambda: 100, renewed=renewed))
    monkeypatch.setattr(recorder, "STATE_DELAY", 1e-9)
    monkeypatch.setattr(recorder, "PROGRESS_PER_SECOND", 3e9)
    for _ in range(2):
        await three.flush()
    monkeypatch.setattr(recorder, "PROGRESS_PER_SECOND", 1.5e9)
    await three.flush()
    monkeypatch.setattr(recorder, "PROGRESS_PER_SECOND", 0.001)
    await three.flush()
    assert asked == [196, 196, 392]
    later = time.monotonic() + LASTS.total_seconds() / 2
    monkeypatch.setattr(recorder.time, "monotonic", lambda: later)
    await three.flush()
    assert len(asked) == 4, "else the open time that was watched would look over"


async def test_what_waits_is_told_of_each_cluster(three):
    three.record(cluster="a", changes=(a_change(1, cluster="a"),))
    assert [three.waiting_of(one) for one in ("a", "b", "unknown")] == [1, 0, 0]
    await three.flush()
    assert three.waiting_of("a") == 0


async def test_a_quiet_cluster_is_not_written_with_another(three):
    await three.flush()
    await in_thread(models.WatchRecord.objects.filter(cluster="b").delete)
    three.record(cluster="a", changes=(a_change(),))
    await three.flush()
    await three.flush()
    assert (three.writes, await in_thread(kept)) == (2, [("a", 0)])
    assert sorted(await in_thread(reached)) == ["a", "c"]


async def test_how_far_a_quiet_cluster_is_known_is_written_in_time(three, monkeypatch):
    await three.flush()
    await in_thread(models.WatchRecord.objects.all().delete)
    monkeypatch.setattr(recorder, "STATE_DELAY", 1e-9)
    monkeypatch.setattr(recorder, "PROGRESS_PER_SECOND", 1e12)
    await three.flush()
    assert await in_thread(reached) == dict.fromkeys("abc", "7")


async def test_a_list_of_one_cluster_holds_up_no_other(three):
    three.add(msgspec.structs.replace(a_source("b"), listing=lambda: True))
    for cluster in "abc":
        three.record(cluster=cluster, changes=(a_change(cluster=cluster),))
    await three.flush()
    assert await in_thread(kept) == [("a", 0), ("c", 0)]


@pytest.mark.parametrize(("each", "writes"), [(2, 3), (3, 4)])
async def test_a_transaction_has_a_bound_and_keeps_the_order(three, monkeypatch, each, writes):
    monkeypatch.setattr(recorder, "CHANGES_PER_WRITE", 3)
    monkeypatch.setattr("leases.history.write_queue.CHANGES_PER_WRITE", 2)
    for cluster in "abc":
        many = tuple(a_change(number, cluster=cluster) for number in range(each))
        three.record(cluster=cluster, changes=many)
    await three.flush()
    assert three.writes == writes
    rows = await in_thread(kept)
    assert rows == [(cluster, number) for cluster in "abc" for number in range(each)]


def test_a_refused_row_of_one_cluster_holds_up_no_other():
    odd = a_batch(a_change(1, transitions=BEYOND), a_change(2), states=[(KEY, b"a")])
    state = (KEY, b"b")
    other = a_batch(a_change(3, cluster="b"), states=[state], cluster="b")
    (refused,) = write_what_fits(odd, other)
    assert refused.cluster == "a"
    assert kept() == [("a", 2), ("b", 3)]
    assert reached() == {"a": "7", "b": "7"}
    assert models.LeaseRecord.objects.count() == 2


def test_nothing_is_written_of_any_cluster_where_the_database_fails(monkeypatch):
    def failing(_):
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(write_batch, "save_states", failing)
    some = [a_batch(a_change(cluster=one), states=[(KEY, b"")], cluster=one) for one in "ab"]
    with pytest.raises(OperationalError):
        write_what_fits(*some)
    assert (kept(), reached()) == ([], {})


async def test_a_cluster_whose_state_cannot_be_read_loses_nothing_of_another(three):
    def broken(_: ObjectName):
        raise KeyError("a defect of ours")

    for cluster in "abc":
        three.record(cluster=cluster, changes=(a_change(cluster=cluster),), changed=(KEY,))
    three.add(a_source("b", broken))
    with pytest.raises(KeyError):
        await three.flush()
    assert three.waiting == 3
    three.add(a_source("b"))
    await three.flush()
    assert await in_thread(kept) == [("a", 0), ("b", 0), ("c", 0)]


async def test_two_replicas_that_write_the_same_clusters_do_not_lock_each_other_out(caplog):
    replicas = [Recorder(), Recorder()]
    for one, clusters in zip(replicas, ("abcdefgh", "hgfedcba"), strict=True):
        for cluster in clusters:
            one.add(a_source(cluster))
    tasks = [asyncio.create_task(one.run()) for one in replicas]
    for number in range(20):
        for one in replicas:
            for cluster in "abcdefgh":
                one.record(cluster=cluster, changes=(a_change(number, cluster=cluster),))
        await asyncio.sleep(0.01)
    await until(lambda: models.ChangeRecord.objects.count() == 160, seconds=30)
    assert "Trying again" not in caplog.text
    for one, task in zip(replicas, tasks, strict=True):
        await one.close(task)
    assert len(await in_thread(kept)) == 160
