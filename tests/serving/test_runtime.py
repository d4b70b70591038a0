"""Each line of the runtime that connects two rooms: take it out, and a test here fails."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from weakref import ref

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.db.models.signals import post_delete

from dashboard import clock
from dashboard.access import ended_rights, links
from dashboard.access.known_rights import KNOWN, UserRight, WallRight
from dashboard.config import ClusterSpec
from dashboard.live.page_reader import PageReader
from dashboard.serving import runtime
from dashboard.serving.runtime import Options, Runtime
from dashboard.serving.tasks import cluster_watch
from dashboard.serving.tasks.cluster_watch import ClusterWatch
from leases.apiserver.resources import CLE_GATE
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import ConnectionState
from leases.history import refused_rows
from leases.history.insert_incidents import Reviewed, write_incidents
from leases.history.refused_rows import RefusedValue, What
from leases.history.reliability import NEVER
from leases.kube import reflector
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.models import (  # fmt: skip
    ChangeRecord,
    KindOverride,
    LeaseRecord,
    ReliabilityProgress,
    WallLink,
    WatchRecord,
)
from leases.tracking import kind_overrides as tracking_kinds
from leases.wire.microtime import format_microtime
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with

pytestmark = pytest.mark.django_db(transaction=True)


CLUSTER_TASKS = ("watch", "version", "nodes", "publisher", "deletions", "incidents", "evidence")
KEY = ObjectName("default", "one")
BODY = {
    "metadata": {"name": KEY.name, "namespace": KEY.namespace},
    "spec": {"holderIdentity": "cp-1"},
}


def embedded(name: str) -> ClusterSpec:
    return ClusterSpec(name, ClusterSource(SourceKind.EMBEDDED))


def options(data: Path, **given: object) -> Options:
    return Options(**{"clusters": (embedded("a"),), "data": data} | given)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a while does so only for a moment."""
    for room, name in (
        (runtime, "LOOK_SECONDS"),
        (cluster_watch, "LOOK_SECONDS"),
        (links, "WRITE_SECONDS"),
        (ended_rights, "MIN_SPACING"),
    ):
        monkeypatch.setattr(room, name, 0.01)
    monkeypatch.setattr(ended_rights, "CHECK_SECONDS", 3600.0)


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable]:
    started: list[Runtime] = []
    switching = sys.getswitchinterval()

    async def make(**given: object) -> Runtime:
        one = Runtime(options(tmp_path / "data", **given))
        started.append(one)
        await one.start()
        return one

    yield make
    for one in started:
        if not one.supervisor._stopping.is_set():
            await one.stop()
    sys.setswitchinterval(switching)
    gc.unfreeze()
    await sync_to_async(connections.close_all)()


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


async def until_stored(count: Callable[[], int], wanted: int) -> None:
    async with asyncio.timeout(60):
        while await sync_to_async(count)() != wanted:
            await asyncio.sleep(0.01)


def a_row(**given: object) -> ChangeRecord:
    return to_row(a_change(**given))


def days_ago(days: float) -> dict[str, object]:
    at = clock.now() - timedelta(days=days)
    return {"at": at, "observed_at": at}


class Circle:
    """Refers to itself, so the collector alone can free it."""

    def __init__(self) -> None:
        self.itself = self


async def test_every_cluster_is_remembered_before_a_watch_holds_up_the_reading(start, monkeypatch):
    order = []

    async def prepare(watch: ClusterWatch) -> None:
        await prepared(watch)
        order.append("remembered")

    async def run(watch: ClusterWatch) -> None:
        order.append("watched")
        await ran(watch)

    prepared, ran = ClusterWatch.prepare, ClusterWatch.run
    monkeypatch.setattr(ClusterWatch, "prepare", prepare)
    monkeypatch.setattr(ClusterWatch, "run", run)
    await start(clusters=(embedded("a"), embedded("b")))
    await until(lambda: len(order) == 4)
    assert order == ["remembered", "remembered", "watched", "watched"]


async def test_what_lives_long_is_walked_no_more_until_a_cluster_leaves(start, monkeypatch):
    monkeypatch.setattr(runtime, "GIVE_BACK_SECONDS", 0.001)
    circle = Circle()
    left, frozen = ref(circle), gc.get_freeze_count()
    giving = asyncio.create_task(runtime.give_memory_back(None))
    await until(lambda: gc.get_freeze_count() > frozen)
    del circle
    gc.collect()
    assert left() is not None
    running = await start()
    await running.leave_cluster("a")
    await until(lambda: left() is None and gc.get_freeze_count() > 0)
    giving.cancel()


async def test_what_closed_pages_left_is_freed_each_minute(monkeypatch):
    monkeypatch.setattr(runtime, "GIVE_BACK_SECONDS", 0.001)
    frozen = gc.get_freeze_count()
    giving = asyncio.create_task(runtime.give_memory_back(None))
    await until(lambda: gc.get_freeze_count() > frozen)
    gc.disable()
    try:
        left = ref(Circle())
        await until(lambda: left() is None)
    finally:
        gc.enable()
        giving.cancel()


async def test_a_lease_reaches_the_store_history_and_the_open_pages(start):
    running = await start()
    store, hub = running.clusters["a"].store, running.publisher.hubs["a"]
    assert sys.getswitchinterval() == pytest.approx(runtime.SWITCH_SECONDS)
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == runtime.GARBAGE
    await until(lambda: store.connection.state is ConnectionState.LIVE)
    before = hub.seq
    await running.clusters["a"].writer.create(BODY)
    await until(lambda: store.get(KEY))
    assert hub.seq == before + 1
    await until_stored(ChangeRecord.objects.filter(name=KEY.name).count, 1)
    # What comes after the machine stalled is found, and not seen.
    seen = not (await ChangeRecord.objects.aget(name=KEY.name)).inferred
    assert sum(running.feeds["a"].activity.of(KEY, clock.now())) == seen
    assert len(running.feeds["a"].activity.last_hour.of(KEY)) == seen
    page = PageReader(hub, running.drawings)
    hub.join(page)
    await until(page.wake.is_set)
    hub.pages.discard(page)
    await until(lambda: not hub.awake.is_set())  # nobody looks: nothing ticks


async def test_a_guessed_kind_is_settled_while_it_runs(start, monkeypatch):
    monkeypatch.setattr(tracking_kinds, "ALONE", timedelta(0))
    running = await start()
    store = running.clusters["a"].store
    await until(lambda: store.connection.state is ConnectionState.LIVE)
    renewed = clock.now()
    times = {"acquireTime": renewed - timedelta(seconds=1), "renewTime": renewed}
    spec = {name: format_microtime(at) for name, at in times.items()}
    spec |= {"holderIdentity": "cp-1", "leaseDurationSeconds": 3600}
    await running.clusters["a"].writer.create({**BODY, "spec": spec})
    await until(lambda: (one := store.get(KEY)) and one.kind is Kind.HEARTBEAT)


async def test_every_task_is_supervised(start):
    running = await start()
    of_all = {"recorder", "clock", "retention", "reliability", "overrides", "rights"}
    of_all |= {"wall link use", "renewals", "audit", "notifications", "database", "memory", "fleet"}
    of_all |= {"added clusters"}
    tasks = {(task, "") for task in of_all} | {("lease-api", "")}
    tasks |= {(task, "a") for task in CLUSTER_TASKS}
    assert set(running.supervisor.restarts) == tasks


async def test_elections_are_supervised_where_they_are_held(start):
    running = await start(feature_gates=frozenset({CLE_GATE}), read_only=("a",))
    assert ("elections", "") in running.supervisor.restarts
    await until(lambda: running.clusters["a"].client)
    assert running.clusters["a"].client.read_only


async def test_the_checkpoint_is_shown_from_the_start(start):
    await ChangeRecord.objects.abulk_create([a_row(**days_ago(0.01))])
    running = await start()
    assert sum(running.feeds["a"].activity.totals(clock.now()).values()) == 1
    assert len(running.publisher.hubs["a"].recent) == 1


async def test_what_an_earlier_run_left_is_taken_over(start, monkeypatch):
    asked: list[dict[str, object]] = []

    def reflect(client, **given):
        asked.append(given)
        return reflector.reflect(client, **given)

    monkeypatch.setattr(cluster_watch, "reflect", reflect)
    first = await start()
    await until(lambda: first.clusters["a"].synced)
    await first.clusters["a"].writer.create(BODY)
    await until(lambda: first.clusters["a"].store.get(KEY))
    await first.stop()
    going_on = incident_with(a_change(**days_ago(0.001)), ended=None, settled=False)
    error = ValueError("too large")

    def leave() -> None:
        write_incidents([Reviewed(going_on, clock.now())])
        what = refused_rows.What.INCIDENT
        refused = refused_rows.refusal(what, going_on, error, cluster="a", same="one")
        refused_rows.set_aside([refused])
        # The clock of that run was ahead.
        WatchRecord.objects.update(watched_until=clock.now() + timedelta(hours=1))

    await sync_to_async(leave)()
    reached = (await WatchRecord.objects.aget()).resource_version
    again = await start()
    store = again.clusters["a"].store
    await until(lambda: asked[1:])
    assert asked[1]["since"] == reached
    assert asked[1]["known"] == store.fingerprints
    assert store.heard_at <= clock.now()
    assert [one.id for one in again.incidents["a"].going_on()] == [going_on.id]
    assert len(again.recorder.refused.lately("a", clock.now())) == 1


async def test_old_history_is_deleted(start):
    rows = [a_row(number=n, **days_ago(age)) for n, age in enumerate((9, 8, 1))]
    await ChangeRecord.objects.abulk_create(rows)
    await start(retention_days=7)
    await until_stored(ChangeRecord.objects.count, 2)  # and the last one before, for the state


async def test_more_history_than_asked_for_is_deleted(start):
    rows = [a_row(number=n, **days_ago(3 - n / 100)) for n in range(10)]
    await ChangeRecord.objects.abulk_create(rows)
    await start(retention_rows=4)
    await until_stored(ChangeRecord.objects.count, 5)


async def test_changes_wait_for_the_count_of_their_day(start, monkeypatch):
    made: list[Callable] = []
    judges: list[Callable] = []

    class Forgetting(runtime.Forgetting):
        def __init__(self, *given, counted_until, trusted, **named):
            made.append(counted_until)
            judges.append(trusted)
            super().__init__(*given, counted_until=counted_until, trusted=trusted, **named)

    monkeypatch.setattr(runtime, "Forgetting", Forgetting)
    running = await start()
    await until(running.reliability.counted.is_set)
    await until(lambda: made)
    assert judges == [running.trust.look]
    assert await sync_to_async(made[0])("a") == NEVER
    await ReliabilityProgress.objects.acreate(cluster="a", day=date(2026, 11, 22))
    assert await sync_to_async(made[0])("a") == datetime(2026, 11, 22, tzinfo=UTC)


async def test_activity_of_yesterday_is_forgotten_and_history_waits_for_its_count(
    tmp_path, monkeypatch
):
    running = Runtime(options(tmp_path))
    ran: list[datetime] = []

    async def run(_self, now):
        ran.append(now)

    monkeypatch.setattr(runtime.Forgetting, "run", run)
    old = a_change(**days_ago(3))
    activity = running.feeds["a"].activity
    activity.note((old,))
    assert activity.totals(old.at)
    forgetting = asyncio.create_task(running._forget())
    await until(lambda: not activity.totals(old.at))
    await asyncio.sleep(0)
    assert not ran
    running.reliability.counted.set()
    await until(lambda: ran)
    forgetting.cancel()
    await asyncio.gather(forgetting, return_exceptions=True)


async def test_a_kind_that_an_admin_set_is_taken_over(start):
    place = {"cluster": "a", "namespace": KEY.namespace, "name": KEY.name}
    running = await start()
    store = running.clusters["a"].store
    await until(lambda: store.connection.state is ConnectionState.LIVE)
    await running.clusters["a"].writer.create(BODY)
    await until(lambda: store.get(KEY))
    assert store.get(KEY).kind is not Kind.IDENTITY
    await KindOverride.objects.acreate(
        **place, kind=Kind.IDENTITY.value, username="ada", at=clock.now()
    )
    await until(lambda: store.get(KEY).kind is Kind.IDENTITY)


async def test_the_renewals_of_leases_are_noted(start, monkeypatch):
    running = await start()
    cluster = running.clusters["a"]
    looked: list[object] = []
    monkeypatch.setattr(cluster.renewals, "look", looked.extend)
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    await cluster.writer.create(BODY)
    await until(lambda: looked)


async def test_a_wall_link_that_is_open_counts_as_used(start):
    link = await WallLink.objects.acreate(
        name="lobby", clusters=["a"], created_by="ada", created_at=clock.now()
    )
    running = await start()
    running.rights.add(WallRight(link.pk, "a"), lambda _reason: None)
    await until_stored(WallLink.objects.filter(last_used_at__isnull=False).count, 1)


async def test_a_wall_link_is_known_before_it_was_used(start):
    given = {"created_by": "ada", "created_at": clock.now()}
    opens = await sync_to_async(links.create)(
        name="lobby", clusters=["a"], created_by="ada", now=clock.now()
    )
    ended = await WallLink.objects.acreate(
        name="old", digest="ended", clusters=["a"], expires_at=clock.now(), **given
    )
    await start()
    assert KNOWN.find(("wall", opens[0].digest, "a"), clock.now()).found == opens[0]
    assert WallRight(ended.pk, "a") not in KNOWN.rights


async def test_a_right_that_ends_here_ends_at_once(start):
    user = await User.objects.acreate(username="olga")
    running = await start()
    ended: list[str] = []
    running.rights.add(UserRight(user.pk, None), ended.append)
    await until(lambda: running.rights._loop)
    await user.adelete()
    await until(lambda: ended)


async def test_pages_show_what_is_wrong_in_any_part(tmp_path, monkeypatch):
    running = Runtime(options(tmp_path))
    hub = running.publisher.hubs["a"]
    assert hub.problem() is None
    hub.failed("regions", KeyError("x"))
    assert "Parts of open pages of a are not drawn anew." in hub.problem()
    monkeypatch.setattr(type(running.clock), "says", "The clock jumped.")
    running.trust.says = "It is in doubt."
    assert hub.problem().startswith("The clock jumped. It is in doubt. ")
    running.secrets = SimpleNamespace(says="No Secret may be read.")
    assert running.secrets.says in hub.problem()
    running.rights._failing = True
    assert ended_rights.PROBLEM in hub.problem()
    monkeypatch.setattr(type(runtime.reach), "error", "It does not answer.")
    assert runtime.NOT_REACHABLE in hub.problem()
    assert ended_rights.PROBLEM not in hub.problem()
    monkeypatch.setattr(type(running.recorder), "problem", "History waits.")
    assert hub.problem().startswith("History waits. ")
    refusal = RefusedValue(at=clock.now(), cluster="a", what=What.CHANGE, error="too long")
    running.recorder.refused.fill("a", (refusal,))
    monkeypatch.setattr(running.recorder, "_writing", {"a": 7, "b": 8})
    assert running.publisher.hubs["a"].unwritten() == 7
    assert list(hub.refused(clock.now())) == [refusal]
    running.notifications.care, running.notifications.failing = object(), object()
    assert hub.care() is running.notifications.care
    assert hub.failing_receivers() is running.notifications.failing
    assert hub.going_on == running.incidents["a"].going_on
    running.rights.close()


async def test_the_embedded_api_is_started_as_asked(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    gates = frozenset({"CoordinatedLeaderElection"})
    running = await start(api_port=port, host="127.0.0.2", feature_gates=gates)
    assert running.api.url == f"http://127.0.0.2:{port}"
    await until(lambda: running.clusters["a"].client)
    body = BODY | {"spec": BODY["spec"] | {"strategy": "OldestEmulationVersion"}}
    made = await running.clusters["a"].writer.create(body)
    assert made.spec.strategy == "OldestEmulationVersion"
    running.api._failed("a request", KeyError("x"))
    assert "The embedded Lease API failed" in running.problem()


async def test_the_demo_is_a_client_of_the_embedded_api(start):
    running = await start(demo=True)
    await until(lambda: running.clusters["a"].lease_count)


async def test_nothing_is_left_after_the_end(start):
    running = await start()
    store = running.clusters["a"].store
    await until(lambda: store.connection.state is ConnectionState.LIVE)
    listening = post_delete.has_listeners(WallLink)
    await running.clusters["a"].writer.create(BODY)
    await until(lambda: store.get(KEY))
    api, client = running.api, running.clusters["a"].client
    await running.stop()
    assert (listening, post_delete.has_listeners(WallLink)) == (True, False)
    assert await LeaseRecord.objects.acount() == 1
    assert running._writing.done()
    assert running.rights._thread._shutdown
    assert client._session._api is None
    assert api.serving is None
    watching = [task.get_name() for task in asyncio.all_tasks() if task.get_name().endswith(" a")]
    assert watching == []
