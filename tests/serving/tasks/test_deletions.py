"""Many Leases deleted on the embedded API while the board watches."""

from __future__ import annotations

import asyncio
import csv
import io
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, connections
from django.test import AsyncClient

from dashboard.board import install_board
from dashboard.config import ClusterSpec
from dashboard.serving.runtime import Options, Runtime
from dashboard.serving.tasks.admin_writes import DeletionsAtWork
from dashboard.serving.tasks.cluster_watch import KindOverrides
from leases.actions import deletion_runs
from leases.actions.delete_many import unpack
from leases.apiserver import serving
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import ConnectionState
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.models import ChangeRecord, Deletion, Edit, KindOverride
from leases.tracking.kind_overrides import Kinds, Marks
from leases.tracking.tracker import Tracker
from tests.serving.tasks.busy_api import Busy
from tests.support.board import async_browser_of
from tests.support.recording import in_thread

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 400
AT_ONCE = 50  # creates
BULK = "namespace=default"


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> type[Busy]:
    fresh = type("Busy", (Busy,), {})
    monkeypatch.setattr(serving, "App", fresh)
    return fresh


@pytest.fixture
async def running(tmp_path: Path, busy: type[Busy]) -> AsyncIterator[Runtime]:
    spec = ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED))
    one = Runtime(Options(clusters=(spec,), data=tmp_path))
    install_board(one)
    await one.start()
    await until(lambda: one.clusters["a"].store.connection.state is ConnectionState.LIVE)
    yield one
    await one.stop()
    install_board(None)
    await sync_to_async(connections.close_all)()


@pytest.fixture
async def admin() -> AsyncClient:
    return await async_browser_of("ada", "admin")


async def until(seen: Callable[[], object], *, seconds: float = 900) -> None:
    async with asyncio.timeout(seconds):
        while not seen():
            await asyncio.sleep(0.02)


async def create(running: Runtime, namespace: str, names: list[str]) -> None:
    """Vacant Leases, as many as there are names."""
    client, store = running.clusters["a"].writer, running.clusters["a"].store
    left = iter(names)

    async def some() -> None:
        for name in left:
            await client.create(
                {
                    "metadata": {"namespace": namespace, "name": name},
                    "spec": {"holderIdentity": "", "leaseDurationSeconds": 15},
                }
            )

    before = len(store.snapshot())
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    await until(lambda: len(store.snapshot()) == before + len(names))


async def start(admin: AsyncClient, number: int, query: str = BULK) -> str:
    """Confirm as a person does; returns the address of the deletion."""
    path = f"/c/a/leases/delete/?{query}"
    page = (await admin.get(path)).content.decode()
    sent = {
        "seen": value_of(page, "seen"),
        "once": value_of(page, "once"),
        "typed_number": str(number),
        "reason": "drill",
    }
    answer = await admin.post(path, sent)
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    return str(answer["Location"])


def value_of(page: str, name: str) -> str:
    """What a hidden field of the page holds."""
    start = page.index(f'name="{name}" value="') + len(f'name="{name}" value="')
    return page[start : page.index('"', start)]


async def ended(address: str) -> Deletion:
    number = int(address.rstrip("/").rpartition("/")[2])
    async with asyncio.timeout(900):
        while True:
            row = await Deletion.objects.aget(pk=number)
            if row.ended_at is not None:
                return row
            await asyncio.sleep(0.1)


async def report(admin: AsyncClient, address: str) -> list[dict[str, str]]:
    answer = await admin.get(f"{address}?format=csv")
    text = "".join([part.decode() async for part in answer])
    return list(csv.DictReader(io.StringIO(text)))


async def test_each_of_many_is_accounted_for(running, busy, admin, monkeypatch):
    monkeypatch.setattr(deletion_runs, "CHUNK", 150)
    store, client = running.clusters["a"].store, running.clusters["a"].writer
    names = [f"n-{number:05}" for number in range(MANY)]
    await create(running, "default", names)
    await create(running, "kube-system", ["one", "two"])
    busy.refuse_every = 100
    busy.uncounted = f"/{names[-3]}"
    busy.barrier = asyncio.Event()
    await until(lambda: store.behind is None)  # what comes before that is inferred
    address = await start(admin, MANY)
    await until(lambda: busy.on_their_way == 20)
    # While the first are on their way: two come alive, and one goes.
    for name in names[-2:]:
        await client.patch(ObjectName("default", name), {"spec": {"holderIdentity": "me"}})
    await client.delete(ObjectName("default", names[-3]))
    busy.barrier.set()

    row = await ended(address)
    assert (row.state, row.note) == (Deletion.DONE, "")
    assert unpack(bytes(row.chosen)) == []  # each has its row in the audit trail
    assert busy.most == 20
    assert busy.refused == 4
    assert busy.too_early < 20 * busy.refused  # nobody sent more before the time
    assert busy.deletes == MANY - 1 + busy.refused  # those that were sent away came again

    lines = await report(admin, address)
    fates = {line["name"]: line["outcome"] for line in lines}
    assert len(lines) == len(fates) == MANY
    assert Counter(fates.values()) == {"deleted": MANY - 3, "left alone": 2, "gone": 1}
    assert {fates[name] for name in names[-2:]} == {"left alone"}
    assert fates[names[-3]] == "gone"

    left = {str(lease.key) for lease in (await listed(client))}
    assert left == {
        f"default/{names[-1]}",
        f"default/{names[-2]}",
        "kube-system/one",
        "kube-system/two",
    }
    await until(lambda: {str(one.key) for one in store.snapshot()} == left)
    await until(lambda: not running.recorder.waiting)
    gone = ChangeRecord.objects.filter(namespace="default", change="deleted")
    rows = [name async for name in gone.values_list("name", flat=True)]
    assert sorted(rows) == names[:-2]
    assert not await gone.filter(inferred=True).aexists()
    audited = Edit.objects.filter(batch=row.batch)
    assert await audited.acount() == MANY
    assert await audited.filter(outcome="done", reason="drill", username="ada").acount() == MANY - 3
    assert not await audited.filter(outcome=Edit.INTENDED).aexists()
    page = (await admin.get(address)).content.decode()
    assert "397 deleted" in page
    assert "2 left alone" in page


async def listed(client: Any) -> list[Any]:
    found: list[Any] = []
    async for part in client.list():
        found += part.leases
    return found


async def test_a_stop_leaves_the_rest_and_says_so(running, busy, admin):
    await create(running, "default", [f"n-{number:03}" for number in range(100)])
    busy.barrier = asyncio.Event()
    address = await start(admin, 100)
    await until(lambda: busy.on_their_way == 20)
    stop = await admin.post(f"{address}stop/")
    assert stop.status_code == 302
    await asyncio.sleep(0)
    assert await Deletion.objects.filter(stop_asked=True).acount() == 1
    await until(lambda: running.deletions["a"]._running._stopped.is_set())
    busy.barrier.set()
    row = await ended(address)
    assert row.state == Deletion.STOPPED
    lines = await report(admin, address)
    assert Counter(line["outcome"] for line in lines) == {"deleted": 20, "not tried": 80}
    kept = {one.name for one in unpack(bytes(row.chosen))}
    assert kept == {line["name"] for line in lines if line["outcome"] == "not tried"}
    assert len(running.clusters["a"].store.snapshot()) >= 80
    assert "Try the 80 again" in (await admin.get(address)).content.decode()
    again = await start(admin, 80, query=f"again={address.rstrip('/').rpartition('/')[2]}")
    assert (await ended(again)).state == Deletion.DONE
    fates = Counter(line["outcome"] for line in await report(admin, again))
    assert fates == {"deleted": 80}


async def test_who_loses_the_right_loses_the_deletion(running, busy, admin):
    await create(running, "default", [f"n-{number:03}" for number in range(60)])
    busy.barrier = asyncio.Event()
    address = await start(admin, 60)
    await until(lambda: busy.on_their_way == 20)
    row = await Deletion.objects.select_related("user").afirst()
    row.user.is_active = False
    await row.user.asave()
    running.deletions["a"].wake()
    await until(lambda: running.deletions["a"]._running._stopped.is_set())
    busy.barrier.set()
    ended_row = await ended(address)
    assert (ended_row.state, ended_row.note) == (
        Deletion.STOPPED,
        "ada may not edit Leases any more.",
    )


async def test_what_a_dead_process_left_is_marked_and_not_taken_up(running, admin, busy):
    await create(running, "default", ["one"])
    address = await start(admin, 1)
    row = await ended(address)
    silent_since = row.beat_at - 2 * deletion_runs.SILENT
    lost = {
        "state": Deletion.RUNNING, "process": "another", "ended_at": None, "beat_at": silent_since,
    }  # fmt: skip
    await Deletion.objects.filter(pk=row.pk).aupdate(**lost)
    running.deletions["a"].wake()
    found = await ended(address)
    assert found.state == Deletion.INTERRUPTED
    assert found.note == deletion_runs.INTERRUPTED


async def test_those_whose_turn_had_come_when_it_was_stopped_are_not_tried(
    running, busy, admin, monkeypatch
):
    await create(running, "default", [f"n-{number:03}" for number in range(30)])
    opened = deletion_runs.write_intents

    def stop_after(*given: Any) -> list[Edit]:
        rows = opened(*given)
        running.deletions["a"]._running._stopped.set()
        return rows

    monkeypatch.setattr(deletion_runs, "write_intents", stop_after)
    address = await start(admin, 30)
    assert (await ended(address)).state == Deletion.STOPPED
    lines = await report(admin, address)
    assert Counter(line["outcome"] for line in lines) == {"not tried": 30}
    assert busy.deletes == 0
    page = (await admin.get(address)).content.decode()
    assert "refused" not in page
    assert "Try the 30 again" in page
    rows = Edit.objects.filter(action="lease.delete")
    assert await rows.filter(outcome="failed", closed_at__isnull=False).acount() == 20


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has no lock of the whole")
@pytest.mark.parametrize("step", ["begin", "write_intents", "close_rows", "end"])
async def test_a_locked_database_is_waited_for(running, busy, admin, monkeypatch, step):
    """Another process holds the lock for longer than SQLite waits; then each step is stored."""
    await create(running, "default", [f"n-{number}" for number in range(5)])
    stored, refused = getattr(deletion_runs, step), []
    monkeypatch.setattr(deletion_runs, "BEAT_SECONDS", 0.05)

    def in_a_lock(*given: Any) -> Any:
        if refused:
            return stored(*given)
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 0")
        other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(OperationalError, match="locked") as error:
                stored(*given)
            refused.append(step)
            raise error.value
        finally:
            other.close()

    monkeypatch.setattr(deletion_runs, step, in_a_lock)
    address = await start(admin, 5)
    row = await ended(address)
    assert (row.state, refused) == (Deletion.DONE, [step])
    assert Counter(line["outcome"] for line in await report(admin, address)) == {"deleted": 5}
    assert busy.deletes == 5
    rows = Edit.objects.filter(action="lease.delete", outcome="done", resolved_at=None)
    assert await rows.acount() == 5


class Told:
    """In place of a tracker: what it was told last, and how often."""

    times = 0

    def set_overrides(self, kinds: Kinds, marks: Marks) -> None:
        self.kinds, self.marks = kinds, marks
        self.times += 1


async def test_one_look_at_the_database_serves_all_clusters() -> None:
    looks: list[Callable[[], Any]] = []

    async def counted(work: Callable[[], Any]) -> Any:
        looks.append(work)
        return await in_thread(work)

    told, overrides = {name: Told() for name in "abc"}, KindOverrides(counted)
    for name, tracker in told.items():
        await overrides.follow(name, cast("Tracker", tracker))
    key, place = ObjectName("ns", "one"), {"cluster": "b", "namespace": "ns", "name": "one"}
    row = KindOverride(**place, kind="lock", username="ada", at=datetime.now(UTC))
    await row.asave()
    looks.clear()
    await overrides.refresh()
    assert len(looks) == 1
    assert (told["a"].kinds, told["b"].kinds) == ({}, {key: (Kind.LOCK, "set by ada")})
    await overrides.follow("c", cast("Tracker", told["c"]))
    assert [one.times for one in told.values()] == [1, 2, 2], "once, and what is new"
    at_work = DeletionsAtWork(counted)
    looks.clear()
    assert not any([await at_work.in_cluster(name, now=False) for name in "abc"])
    assert len(looks) == 1
    assert not await at_work.in_cluster("a", now=True)
    assert len(looks) == 2
