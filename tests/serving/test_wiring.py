"""A watch that died in a running process makes its cluster stale, and the page says why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import InterfaceError, connections

from dashboard.config import ClusterSpec
from dashboard.management.commands import serve
from dashboard.serving.runtime import Options, Runtime
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.steady_clock import Jump
from leases.domain.watched_times import ConnectionState, Missing
from leases.history.watched_spans import STOOD_STILL
from leases.kube.backoff import Backoff
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.kube.lease_client import LeaseClient
from leases.models import Edit, KindOverride
from leases.tracking.tracked_lease import Update
from leases.tracking.tracker import Progress, Tracker
from leases.wire.microtime import format_microtime
from leases.wire.status import Forbidden, Status
from leases.wire.watch_decoding import Connected, Disconnected

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def started(data: Path) -> AsyncIterator[Runtime]:
    spec = ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED))
    one = Runtime(Options(clusters=(spec,), data=data))
    one.supervisor._backoff = lambda: Backoff(first=3600.0, limit=3600.0)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()
        await sync_to_async(connections.close_all)()


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with started(tmp_path) as one:
        yield one


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


async def test_a_cluster_whose_watch_died_is_stale_and_says_why(
    running: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = running.clusters["a"].store
    await until(lambda: store.connection.state is ConnectionState.LIVE)

    def fails(*_given: object) -> None:
        raise KeyError

    monkeypatch.setattr(Tracker, "_follow", fails)
    body = {"metadata": {"name": "one", "namespace": "default"}, "spec": {"holderIdentity": "x"}}
    await running.clusters["a"].writer.create(body)
    await until(lambda: running.supervisor.restarts["watch", "a"])
    assert store.connection.state is ConnectionState.STALE
    assert store.connection.detail.startswith("The Leases of a are not watched. The task watch")
    assert store.connection.detail in str(running.problem("a"))


async def test_the_version_of_a_server_is_read_each_time_its_watch_is_live_again(
    running: Runtime,
) -> None:
    hub, tracker = running.publisher.hubs["a"], running._watches["a"].tracker
    await until(lambda: hub.server_version)
    version = hub.server_version
    assert re.fullmatch(r"v1\.\d+\.\d+.*", version)
    hub.server_version = "v0"
    tracker.handle(Disconnected("The API server is replaced."))
    tracker.handle(Connected())
    await until(lambda: hub.server_version == version)


async def test_a_watch_knows_whether_a_lease_can_expire(running: Runtime) -> None:
    cluster = running.clusters["a"]
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    assert cluster.client is not None
    watch = cluster.client._watched
    assert watch is not None
    assert watch._idle()
    now = {"renewTime": format_microtime(running.clock.now()), "leaseDurationSeconds": 3600}
    body = {
        "metadata": {"name": "one", "namespace": "default"}, "spec": {"holderIdentity": "x", **now},
    }  # fmt: skip
    await cluster.writer.create(body)
    await until(lambda: not watch._idle())


async def test_a_server_that_does_not_tell_its_version_is_watched_all_the_same(
    running: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, watch = running.publisher.hubs["a"], running._watches["a"]
    await until(lambda: hub.server_version)

    async def refuses(_: LeaseClient) -> str:
        raise Forbidden(Status(code=403, message="no"))

    monkeypatch.setattr(LeaseClient, "server_version", refuses)
    watch._live_again.set()
    await until(lambda: not hub.server_version)
    assert not running.supervisor.restarts["version", "a"]
    assert hub.store.connection.state is ConnectionState.LIVE


async def test_the_page_of_all_clusters_hears_of_problems_and_says_where_it_fails(
    running: Runtime,
) -> None:
    fleet = running.publisher.fleet
    assert fleet.feeds is running.publisher.hubs
    fleet.failed("strips", KeyError())
    assert "Some clusters are not drawn anew" in str(running.problem())
    assert fleet.problem() == running.problem()


async def test_every_room_hears_that_the_machine_slept(running: Runtime) -> None:
    cluster = running.clusters["a"]
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    now = running.clock.now()
    (slept,) = running.clock.on_sleep
    slept(now - timedelta(seconds=61))
    # The tracker: what arrives now is of the past, and nothing is measured across it.
    assert cluster.store.watched_since >= now
    # The pages, and the count of flapping.
    assert running.feeds["a"].activity.watched.since >= now
    # History.
    spans = running.recorder.watches.take("a", now)
    assert spans[0].detail == STOOD_STILL
    # The causes. Where the start took long, they know of that, too.
    casebook = running.incidents["a"]._casebook
    await until(
        lambda: (Missing.STOOD_STILL, True) in {(one.why, one.hosted) for one in casebook.breaks}
    )


async def test_causes_are_judged_after_a_look_at_the_clock(running: Runtime) -> None:
    """Else what flapped before the process stood still would be over before that is known."""
    cluster, incidents = running.clusters["a"], running.incidents["a"]
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    assert incidents._look == running.clock.look
    done: list[str] = []
    read = incidents._read_updates

    async def reading() -> None:
        done.append("read")
        await read()

    incidents._look = lambda: done.append("look")
    incidents._read_updates = reading  # type: ignore[method-assign]
    incidents._wake.set()
    await until(lambda: "read" in done)
    assert done[:2] == ["look", "read"]


async def test_causes_that_are_judged_anew_know_what_nobody_watched(running: Runtime) -> None:
    await until(lambda: running.clusters["a"].store.connection.state is ConnectionState.LIVE)
    incidents = running.incidents["a"]
    running.clock.on_sleep[0](running.clock.now() - timedelta(seconds=61))

    def knows() -> bool:
        return Missing.STOOD_STILL in {one.why for one in incidents._casebook.breaks}

    await until(knows)
    before = incidents._casebook
    incidents.begin_anew()
    await until(lambda: incidents._casebook is not before)
    assert knows()


async def test_what_a_person_wrote_is_known_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder that a person put there, and nobody renewed, did not stop renewing."""
    monkeypatch.setattr("dashboard.serving.tasks.incidents.JUDGED_AGAIN", timedelta(0))
    async with started(tmp_path) as before:
        cluster = before.clusters["a"]
        await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
        now = format_microtime(before.clock.now())
        spec = {"holderIdentity": "x", "leaseDurationSeconds": 4, "renewTime": now}
        body = {"metadata": {"name": "b", "namespace": "default"}, "spec": spec}
        await cluster.writer.create(body)
        await until(cluster.store.snapshot)
    async with started(tmp_path) as running:
        incidents = running.incidents["a"]
        incidents.begins_anew = True  # as after a jump of the clock
        await until(incidents.going_on)
        (incident,) = incidents.going_on()
        assert incident.cause is Cause.BY_HAND
        assert "; nobody renewed it, so it ran out" in incident.sentence


async def test_a_kind_that_an_admin_chose_is_live_and_outlasts_a_restart(tmp_path: Path) -> None:
    body = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"holderIdentity": "x"}}
    for start in range(2):
        async with started(tmp_path) as running:
            cluster = running.clusters["a"]
            await until(lambda store=cluster.store: store.connection.state is ConnectionState.LIVE)
            if start == 0:
                await cluster.writer.create(body)
                await until(cluster.store.snapshot)
                await KindOverride.objects.acreate(
                    cluster="a", namespace="default", name="b", kind="election", username="ada",
                    at=running.clock.now(),
                )  # fmt: skip
                await running.overrides.refresh()
            (one,) = cluster.store.snapshot()
            assert (one.kind, one.kind_reason) == (Kind.ELECTION, "set by ada")


async def test_a_deletion_through_a_form_is_known_to_be_made_by_a_person(
    running: Runtime,
) -> None:
    cluster = running.clusters["a"]
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    spec = {"holderIdentity": "x", "leaseDurationSeconds": 1}
    spec["renewTime"] = format_microtime(running.clock.now())
    for name in ("by-form", "by-kubectl"):
        await cluster.writer.create(
            {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        )
    going_on = running.incidents["a"].going_on
    await until(lambda: sum(len(one.leases) for one in going_on()) == 2)
    uid = cluster.store.get(ObjectName("default", "by-form")).lease.uid
    await sync_to_async(Edit.objects.create)(
        user=await sync_to_async(User.objects.create)(username="olivia"), username="olivia",
        at=running.clock.now(), cluster="a", namespace="default", name="by-form",
        action="lease.delete", before={}, after={}, request={"verb": "delete", "uid": uid},
    )  # fmt: skip
    for name in ("by-form", "by-kubectl"):
        await cluster.writer.delete(ObjectName("default", name))

    def causes() -> dict[str, Cause]:
        _, found = running.feeds["a"].newest_first()
        gone = [one for one in found if one.change is ChangeType.DELETED and one.cause]
        return {one.name: one.cause for one in gone}

    await until(lambda: causes() == {"by-form": Cause.BY_HAND, "by-kubectl": Cause.DELETED})


async def test_a_deletion_has_a_cause_while_the_database_is_away(
    running: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_gone: object) -> set[Change]:
        raise InterfaceError("connection already closed")

    monkeypatch.setattr("dashboard.serving.tasks.incidents.deleted_here", away)
    cluster, key = running.clusters["a"], ObjectName("default", "one")
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    spec = {"holderIdentity": "x", "renewTime": format_microtime(running.clock.now())}
    body = {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}
    await cluster.writer.create(body)
    await until(cluster.store.snapshot)
    await cluster.writer.delete(key)
    await until(lambda: any(one.cause for one in running.feeds["a"].newest_first()[1]))


async def test_every_room_hears_that_the_clock_was_set(running: Runtime) -> None:
    await until(lambda: running.clusters["a"].store.connection.state is ConnectionState.LIVE)
    body = {"metadata": {"name": "one", "namespace": "default"}, "spec": {"holderIdentity": "x"}}
    await running.clusters["a"].writer.create(body)
    await until(running.clusters["a"].store.snapshot)
    written: list[dict[str, object]] = []
    running.recorder.record = lambda **given: written.append(given)  # type: ignore[method-assign]
    since = running.clusters["a"].store.connection.since
    heard: list[Jump] = []
    running.clusters["a"].renewals.clock_jumped = heard.append  # type: ignore[method-assign]
    watched = running.feeds["a"].activity.watched.first
    assert watched is not None
    hour = timedelta(hours=1)
    now = running.clock.now()
    running.feeds["a"].nodes.read_at = now
    for follow in running.clock.on_jump:
        follow(Jump(now, now + hour))
    assert heard
    assert running.clusters["a"].store.connection.since == since + hour
    assert running.feeds["a"].activity.watched.first == watched + hour
    assert running.feeds["a"].nodes.read_at == now + hour
    assert any("was set forward" in span.detail for span in running.recorder.watches.take("a", now))
    assert running.incidents["a"].begins_anew
    # The states: they are stored with the new moments.
    assert {"cluster": "a", "changed": (ObjectName("default", "one"),)} in written


async def test_history_and_metrics_read_what_the_watch_knows(running: Runtime) -> None:
    cluster, source = running.clusters["a"], running.recorder._sources["a"]
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    tracker = running._watches["a"].tracker
    assert cluster.counters is tracker.counters
    assert cluster.unprocessed_seconds == tracker.unprocessed_seconds
    key = ObjectName("default", "one")
    cluster.store.checkpoint_rotation.next = (  # type: ignore[method-assign]
        lambda most, _now: [key] * most
    )
    assert source.renewed(2) == [key, key]
    assert not source.listing()
    tracker._listing = Progress("a", "1", running.clock.now())
    assert source.listing()
    tracker._listing = None
    # A Lease that is drawn anew, or gone, has another state.
    written: list[tuple[ObjectName, ...]] = []
    running.recorder.record = (  # type: ignore[method-assign]
        lambda *, changed, **_: written.append(changed)
    )
    gone = ObjectName("default", "gone")
    update = Update(cluster="a", now=running.clock.now(), seq=1, redraw=(key,), removed=(gone,))
    running._watches["a"]._record(update)
    assert written == [(key, gone)]


async def test_what_people_do_about_incidents_is_drawn_at_once(running: Runtime) -> None:
    hub = running.publisher.hubs["a"]
    turn = hub.incident_turn
    running.notifications.cared("a")
    assert hub.incident_turn == turn + 1
    running.notifications.cared("left")  # it is followed no longer


async def test_the_causes_know_how_many_heartbeats_there_are(running: Runtime) -> None:
    await until(lambda: running.clusters["a"].store.connection.state is ConnectionState.LIVE)
    now = format_microtime(running.clock.now())
    spec = {"holderIdentity": "node", "leaseDurationSeconds": 40, "renewTime": now}
    body = {"metadata": {"name": "node", "namespace": "kube-node-lease"}, "spec": spec}
    await running.clusters["a"].writer.create(body)
    await until(lambda: running.incidents["a"]._casebook._crowd.heartbeats == 1)


async def test_the_clock_is_looked_at_by_itself(running: Runtime) -> None:
    looks: list[None] = []
    running.clock.look = lambda: looks.append(None)  # type: ignore[method-assign]
    await until(lambda: looks)


async def test_the_clock_is_looked_at_before_each_event(running: Runtime) -> None:
    tracker = next(iter(running.overrides._trackers.values()))
    assert tracker._look == running.clock.look


async def test_a_doubtful_clock_asks_the_holders_of_other_machines(
    running: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cluster elsewhere alone: our own API writes by our own clock."""
    cluster = running.clusters["a"]
    await until(lambda: cluster.store.connection.state is ConnectionState.LIVE)
    now = running.clock.now()
    for name, since in (("old", timedelta(days=400)), ("fresh", timedelta(minutes=1))):
        spec = {"holderIdentity": "x", "renewTime": format_microtime(now - since)}
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        await cluster.writer.create(body)
    await until(lambda: len(cluster.store.snapshot()) >= 2)
    agree = running.trust._others_agree
    assert not agree(now)
    monkeypatch.setattr(type(cluster), "embedded", False)
    assert agree(now)
    assert not agree(now + timedelta(days=400, hours=12))


async def test_what_trusts_the_clock_asks_the_one_who_judges_it(
    running: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.trust.trusted = False
    assert not running.notifications._trusted()
    assert running.reliability._trusted == running.trust.look
    made: dict[str, object] = {}

    def forgetting(*_given: object, **parts: object) -> None:
        made.update(parts)
        raise KeyError

    monkeypatch.setattr("dashboard.serving.runtime.Forgetting", forgetting)
    with pytest.raises(KeyError):
        await running._forget()
    assert made["trusted"] == running.trust.look


async def test_every_task_of_the_process_runs(running: Runtime) -> None:
    assert {task.get_name() for task in running.supervisor._tasks if not task.done()} == {
        "recorder", "clock", "retention", "reliability", "overrides", "database", "rights",
        "audit", "wall link use", "notifications", "memory", "renewals", "fleet",
        "added clusters",
        "lease-api", "watch a", "publisher a", "deletions a", "incidents a", "nodes a",
        "evidence a", "version a",
    }  # fmt: skip


def test_every_command_that_serves_ends_in_time_after_a_signal() -> None:
    folder = Path(serve.__file__).parent
    calls = {path.stem: set(re.findall(r"\b([\w.]+)\(", path.read_text()))
             for path in folder.glob("*.py")}  # fmt: skip
    serving = {name for name, called in calls.items() if "asyncio.run" in called} - {"doctor"}
    assert serving == {"serve", "lease_api"}
    assert serving == {name for name, called in calls.items() if "end_after_signals" in called}


async def test_no_room_keeps_a_cluster_that_is_left(running: Runtime) -> None:
    await until(lambda: running.clusters["a"].store.connection.state is ConnectionState.LIVE)
    heard = running._watches["a"]._clock_jumped
    assert heard in running.clock.on_jump
    client = running.clusters["a"].client
    assert client is not None
    await running.leave_cluster("a")
    await until(lambda: not running.recorder._sources)
    assert heard not in running.clock.on_jump
    assert running.clock.on_sleep == []
    rooms = (running.clusters, running._watches, running.publisher.hubs, running.deletions)
    assert [len(one) for one in (*rooms, running.incidents, running.overrides._trackers)] == [0] * 6
    assert [task for task in asyncio.all_tasks() if task.get_name().endswith(" a")] == []
    assert client._session._api is None
