"""What happens in a cluster becomes incidents, in history, in the feed and in the counters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from dashboard import clock
from dashboard.config import ClusterSpec
from dashboard.live.publisher import FeedReader
from dashboard.metrics import exposition
from dashboard.serving.runtime import Options, Runtime
from dashboard.serving.tasks import incidents
from leases.domain import notify
from leases.domain.cause import casebook, going_on
from leases.domain.cause.casebook import Casebook
from leases.domain.cause.facts import PodFact, Question
from leases.domain.incident import Cause, Incident, Source
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState
from leases.history import insert_incidents
from leases.history.find_changes import of_lease
from leases.history.find_incidents import find_incidents, incident_of
from leases.history.insert_incidents import CauseMark
from leases.history.outbox import stored_message
from leases.kube import lease_client
from leases.kube.backoff import Backoff
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.kube.evidence import EvidenceReader
from leases.models import Notification
from leases.tracking.tracker import Tracker
from leases.wire.microtime import format_microtime
from tests.support.values.changes import T0
from tests.support.values.receivers import a_receiver

pytestmark = pytest.mark.django_db(transaction=True)

WEB = ObjectName("default", "web")
POD = "web-5d8f7c9b6f-x2x4z"


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable]:
    # Its writes are those of an elector: what a form wrote and nobody renewed is told as that.
    monkeypatch.setattr(lease_client, "FIELD_MANAGER", "elector")
    started: list[Runtime] = []

    async def make() -> Runtime:
        spec = ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED))
        one = Runtime(Options(clusters=(spec,), data=tmp_path))
        one.supervisor._backoff = lambda: Backoff(first=0.01, limit=0.01)
        started.append(one)
        await one.start()
        await until(lambda: connection_of(one) is ConnectionState.LIVE)
        return one

    yield make
    for one in started:
        if not one.supervisor._stopping.is_set():
            await one.stop()
    await sync_to_async(connections.close_all)()


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The cluster says that every Pod was killed for its memory. Returns what it was asked."""
    asked: list[Question] = []

    async def answer(_self: EvidenceReader, questions: tuple[Question, ...]) -> list[PodFact]:
        asked.extend(questions)
        now = clock.now()
        return [
            PodFact(
                key=one.key, read_at=now, phase="Running", restarts=1, exit_reason="OOMKilled",
                exit_code=137, exited_at=now - timedelta(seconds=1), started_at=now,
            )
            for one in questions
            if one.source is Source.PODS
        ]  # fmt: skip

    monkeypatch.setattr(EvidenceReader, "answer", answer)
    return asked


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.02)


async def until_stored(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not await sync_to_async(seen)():
            await asyncio.sleep(0.02)


def connection_of(running: Runtime) -> ConnectionState:
    return running.clusters["a"].store.connection.state


async def hold(running: Runtime, name: str = "web", seconds: int = 1) -> None:
    """Create a Lease that its holder does not renew."""
    now = format_microtime(clock.now())
    spec = {
        "holderIdentity": f"{POD}_8b1e2c1e-6a0f-4b0a-9a55-1f6f5c3a2d10", "acquireTime": now,
        "renewTime": now, "leaseDurationSeconds": seconds, "leaseTransitions": 0,
    }  # fmt: skip
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    await running.clusters["a"].writer.create(body)


async def test_an_expired_lease_is_an_incident_everywhere_and_after_a_restart(
    start, killed, monkeypatch
):
    running = await start()
    hub, feed = running.publisher.hubs["a"], FeedReader()
    hub.feeds.add(feed)
    turn = hub.incident_turn
    await hold(running)
    await until(lambda: any(one.cause is Cause.OOM_KILLED for one in hub.going_on()))
    (incident,) = hub.going_on()
    assert {one.source for one in killed} >= {Source.PODS}
    known = running.clusters["a"].pods.known  # pages need not ask again
    assert known.pods(POD, "default")[0].exit_reason == "OOMKilled"
    assert hub.incident_turn > turn
    frames = list(map(json.loads, feed.frames))
    told = [one for frame in frames for one in frame.get("incidents", ())]
    assert {one["id"] for one in told} == {incident.id}
    assert (told[-1]["cause"], told[-1]["changes"]) == ("oom_killed", len(incident.members))
    assert [frame["seq"] for frame in frames] == list(
        range(frames[0]["seq"], frames[0]["seq"] + len(frames))
    )
    await until_stored(
        lambda: {one.incident for one in of_lease("a", "default", "web", 9)} == {None, incident.id}
    )
    await running.stop()
    again = await start()
    assert again.publisher.hubs["a"].going_on() == (incident,)
    stored = await sync_to_async(incident_of)("a", incident.id)
    assert [one.change for one in stored.story] == ["expired"]
    marked: list[tuple[str, CauseMark]] = []
    write = insert_incidents.write_marks
    monkeypatch.setattr(
        insert_incidents,
        "write_marks",
        lambda some: write(marked.extend(some) or some),
    )
    await again.clusters["a"].writer.delete(WEB)
    await until_stored(lambda: incident_of("a", incident.id).incident.ended)
    assert again.publisher.hubs["a"].going_on() == ()
    assert len(await sync_to_async(find_incidents)("a", limit=9)) == 1
    # The recorder knows what the run before has marked.
    assert [mark.member.identity.split()[1] for _, mark in marked] == ["deleted"]


async def lose(running: Runtime, holder: int) -> None:
    """Another Pod takes the Lease for a second, and never renews it."""

    def state() -> tuple[str | None, Phase]:
        found = running.clusters["a"].store.get(WEB)
        return found.lease.spec.holder_identity, found.phase

    now = format_microtime(clock.now())
    spec = {
        "holderIdentity": f"web-5d8f7c9b6f-x2x4{'bcdfghjklm'[holder]}", "acquireTime": now,
        "renewTime": now, "leaseDurationSeconds": 1, "leaseTransitions": holder,
    }  # fmt: skip
    await running.clusters["a"].writer.patch(WEB, {"spec": spec})
    await until(lambda: state() == (spec["holderIdentity"], Phase.EXPIRED))


@pytest.mark.parametrize("stops", [True, False])
async def test_what_flaps_goes_on_after_a_restart_and_a_failed_review(start, killed, stops):
    def going_on() -> tuple[Incident, ...]:
        return running.publisher.hubs["a"].going_on()

    running = await start()
    await hold(running)
    for number in range(4):
        await lose(running, number)
    await until(
        lambda: any(one.cause is Cause.FLAPPING for one in running.publisher.hubs["a"].going_on())
    )
    (before,) = going_on()
    if stops:
        await running.stop()
        running = await start()
    else:
        known = running.incidents["a"]._casebook
        running.incidents["a"].begin_anew()
        await until(lambda: running.incidents["a"]._casebook is not known)
    for number in range(4, 6):
        await lose(running, number)
    # Whoever took it after a stop that was not brief belongs to that.
    await until(lambda: len(going_on()[0].members) >= 11)
    (after,) = going_on()
    assert (after.id, after.cause, after.began) == (before.id, Cause.FLAPPING, before.began)
    assert after.members[: len(before.members)] == before.members
    await until_stored(
        lambda: [one.incident for one in of_lease("a", "default", "web", 2)] == [before.id] * 2
    )


async def test_who_asked_for_critical_alone_hears_of_a_gap_that_goes_on(start, killed, monkeypatch):
    """In the run after the one that saw it begin, and in the same one."""

    def told() -> list[tuple[str, str]]:
        rows = Notification.objects.order_by("pk")
        return [(row.stage, notify.Gravity(stored_message(row).severity)) for row in rows]

    def long_from(seconds: float) -> None:
        for place in (notify, going_on):
            monkeypatch.setattr(place, "LONG_GAP_SECONDS", seconds)

    critical = notify.Choice(severities=(notify.Gravity.CRITICAL,), stages=(notify.Stage.OPENED,))
    await sync_to_async(a_receiver)(choice=critical)
    running = await start()
    await hold(running)
    await until(running.publisher.hubs["a"].going_on)
    await running.stop()
    assert await sync_to_async(told)() == []
    restore, restored, unseen = Casebook.restore, [], ((T0, T0 + timedelta(seconds=1)),)
    monkeypatch.setattr(incidents, "blind_between", lambda *_, **__: unseen)
    monkeypatch.setattr(
        Casebook, "restore", lambda book, *given: restored.append(given) or restore(book, *given)
    )
    long_from(4.0)
    again = await start()
    assert restored[0][2] == unseen
    await until_stored(lambda: told() == [("opened", "critical")])
    await hold(again, "other")
    await until_stored(lambda: told() == [("opened", "critical")] * 2)


async def test_a_settled_incident_is_counted_once(start, killed, monkeypatch):
    for place in (casebook, casebook):
        monkeypatch.setattr(place, "SETTLED_AFTER", timedelta(seconds=2))
    running = await start()
    await hold(running)
    await until(lambda: running.clusters["a"].counters.incidents)
    name = 'leaseboard_incidents_total{cause="oom_killed",cluster="a"} 1.0'
    assert name in exposition(running, elections=0, now=clock.now())
    (incident,) = running.publisher.hubs["a"].going_on()
    await running.clusters["a"].writer.delete(WEB)
    await until_stored(lambda: incident_of("a", incident.id).incident.ended)
    assert running.publisher.hubs["a"].going_on() == ()
    assert name in exposition(running, elections=0, now=clock.now())


async def test_a_failing_review_is_restarted_and_keeps_what_is_known(start, killed, monkeypatch):
    running = await start()
    hub = running.publisher.hubs["a"]
    await hold(running)
    await until(hub.going_on)
    (incident,) = hub.going_on()
    review, failures = Casebook.review, [KeyError("unexpected")]

    def failing(*given: object) -> object:
        if failures:
            raise failures.pop()
        return review(*given)

    monkeypatch.setattr(Casebook, "review", failing)
    await hold(running, "other")
    await until(lambda: running.supervisor.restarts["incidents", "a"])
    assert "its incidents stand still" in running.problem("a")
    await until_stored(lambda: len(of_lease("a", "default", "other", 9)) == 2)
    await running.clusters["a"].writer.delete(WEB)
    await until_stored(
        lambda: incident_of("a", incident.id) and incident_of("a", incident.id).incident.ended
    )


async def test_a_watch_that_died_goes_on_where_it_was_without_a_list(start, killed, monkeypatch):
    running = await start()
    cluster, follow, failed = running.clusters["a"], Tracker._follow, []
    lists = sum(cluster.counters.lists.values())

    def fails_once(self, *given):
        if not failed:
            failed.append(given)
            raise KeyError
        return follow(self, *given)

    monkeypatch.setattr(Tracker, "_follow", fails_once)
    await hold(running)
    await until(lambda: running.supervisor.restarts["watch", "a"])
    await until(lambda: cluster.store.get(WEB))
    assert sum(cluster.counters.lists.values()) == lists


async def test_a_clue_that_fails_is_skipped_and_logged(start, killed, monkeypatch, caplog):
    note = Casebook.note

    def failing(self, clue):
        if clue.change.name == "odd":
            raise ValueError("unexpected")
        note(self, clue)

    monkeypatch.setattr(Casebook, "note", failing)
    running = await start()
    for name in ("odd", "web"):
        await hold(running, name)
    await until(running.publisher.hubs["a"].going_on)
    assert "default/odd: the cause of a change is skipped" in caplog.text
    assert not running.supervisor.restarts["incidents", "a"]
    await until_stored(lambda: len(of_lease("a", "default", "odd", 9)) == 2)
    found = await sync_to_async(find_incidents)("a", lease="odd", limit=9)
    assert found == []


@pytest.mark.parametrize("stops", [True, False])
async def test_a_planned_stop_that_goes_on_may_take_as_long_as_its_lease_lasts(start, stops):
    running = await start()
    await hold(running, seconds=100)
    await running.clusters["a"].writer.patch(WEB, {"spec": {"holderIdentity": ""}})
    await until(lambda: any(one.planned for one in running.publisher.hubs["a"].going_on()))
    if stops:
        await until_stored(lambda: find_incidents("a", limit=9))
        await running.stop()
        running = await start()
    else:
        known = running.incidents["a"]._casebook
        running.incidents["a"].begin_anew()
        await until(lambda: running.incidents["a"]._casebook is not known)
    ((_, wait),) = running.incidents["a"]._casebook._going_on._planned.values()
    assert wait.seconds == 100
