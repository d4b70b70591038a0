"""What admins do on the page of clusters is followed while the process runs, over real HTTP."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import DatabaseError, connections
from django.test import Client

from dashboard import clock
from dashboard.access.kept_secrets import KUBECONFIGS, seal_text
from dashboard.board import install_board
from dashboard.config import ClusterSpec, SecretsPlace
from dashboard.serving.runtime import Options, Runtime
from dashboard.serving.tasks import added_clusters
from leases.domain.watched_times import ConnectionState
from leases.history import retention
from leases.kube.cluster_source import ClusterSource, SourceKind, parse_source
from leases.kube.given_kubeconfig import read_given
from leases.models import AddedCluster, ChangeRecord, WatchSpan
from tests.support.board import browser_of, member
from tests.support.secret_api import SecretApi, kubeconfig, secret, secret_api
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

pytestmark = pytest.mark.django_db(transaction=True)


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


@pytest.fixture
async def api() -> AsyncIterator[SecretApi]:
    async with secret_api("board") as one:
        one.tokens = {"t-1", "t-2"}
        yield one


@pytest.fixture
async def start(api: SecretApi, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    switching, started = sys.getswitchinterval(), list[Runtime]()

    async def make() -> Runtime:
        one = Runtime(
            Options(
                clusters=(ClusterSpec("a", parse_source(f"url:http://t-1@{api.url[7:]}")),),
                data=tmp_path,
                secrets=SecretsPlace(ClusterSource(SourceKind.URL, api.url), "board"),
            )
        )
        install_board(one)
        started.append(one)
        await one.start()
        return one

    yield make
    for one in started:
        if not one.supervisor._stopping.is_set():
            await one.stop()
    install_board(None)
    sys.setswitchinterval(switching)
    gc.unfreeze()
    await sync_to_async(connections.close_all)()


def sealed(api: SecretApi, *tokens: str) -> str:
    config = read_given(kubeconfig(api.url, token=(*tokens, "t-1")[0]), into="it")
    return seal_text(msgspec.json.encode(config).decode(), KUBECONFIGS)


@sync_to_async
def add(api: SecretApi, **given: Any) -> AddedCluster:
    usual = {"name": "prod", "sealed": sealed(api), "added_by": "ada", "added_at": clock.now()}
    return AddedCluster.objects.create(**(usual | given))


async def change(running: Runtime, **given: Any) -> None:
    await AddedCluster.objects.aupdate(**given)
    running.added.wake()


def synced(running: Runtime) -> Callable[[], bool]:
    return lambda: "prod" in running.clusters and running.clusters["prod"].synced


async def test_an_added_cluster_is_followed_from_the_page_to_its_end(api, start, monkeypatch):
    monkeypatch.setattr(added_clusters, "LOOK_SECONDS", 3600.0)  # so it is the page that wakes it
    running = await start()
    await until(lambda: running.added._loop)
    row = await add(api, labels={"env": "prod"})
    running.added.wake()
    await until(synced(running))
    assert running.feeds["prod"].labels == {"env": "prod"}
    assert running.added.says is None
    await change(running, labels={"env": "test"})
    await until(lambda: running.feeds["prod"].labels == {"env": "test"})
    await change(running, sealed=await sync_to_async(sealed)(api, "t-2"), revision=2)
    await until(lambda: "t-2" in api.seen)
    await row.adelete()
    running.added.wake()
    await until(lambda: "prod" not in running.incidents)
    assert "prod" not in running.clusters
    assert not [task for task in asyncio.all_tasks() if task.get_name().endswith(" prod")]


async def test_another_replica_follows_soon(api, start, monkeypatch):
    monkeypatch.setattr(added_clusters, "LOOK_SECONDS", 0.05)
    running = await start()
    await add(api)
    await until(synced(running))


async def test_a_paused_cluster_is_not_watched_and_says_so(api, start):
    running = await start()
    await add(api)
    running.added.wake()
    await until(synced(running))
    cluster = running.clusters["prod"]
    await until(lambda: cluster.store.behind is None)  # what follows a list may be late
    alive_at, asked = clock.now(), time.monotonic()
    cluster.client.look()
    await until(lambda: cluster.client.silent_seconds() < time.monotonic() - asked)
    hub, at = running.publisher.hubs["prod"], clock.now()
    closed: list[str] = []
    hub.ends.add(closed.append)
    await change(running, paused_at=at, paused_by="ada")
    await until(lambda: running.clusters["prod"].paused)
    told = running.clusters["prod"].connection
    assert (told.since, told.detail) == (
        at, "ada paused it. Admins resume it under Manage clusters.",
    )  # fmt: skip
    assert told.heard_at >= alive_at, "all is known until then"
    assert running.clusters["prod"].client is None
    tasks = {task.get_name() for task in asyncio.all_tasks() if task.get_name().endswith(" prod")}
    assert tasks == {"publisher prod"}
    assert not closed, "its pages stay open"
    assert running.notifications.watched == ["a"], "nobody is reminded of its incidents"

    @sync_to_async
    def pages() -> list[str]:
        browser = browser_of(member("olga", "operator"))
        paths = ("/c/prod/", "/c/prod/leases/", "/", "/c/prod/wall/", "/c/prod/incidents/")
        return [browser.get(path).content.decode() for path in paths] + [
            browser.get("/readyz").content.decode()
        ]

    *shown, ready = await pages()
    assert all("ada paused it." in page or "Paused since" in page for page in shown[:3])
    assert "paused since" in shown[2]
    assert "prod" not in ready
    await change(running, paused_at=None, paused_by="")
    await until(lambda: running.clusters["prod"].connection.state is ConnectionState.LIVE)

    @sync_to_async
    def spans() -> list[tuple[str, str]]:
        rows = WatchSpan.objects.filter(cluster="prod").order_by("since")
        return list(rows.values_list("ended", "detail"))

    async with asyncio.timeout(60):
        while len(found := await spans()) < 2:
            await asyncio.sleep(0.05)
    assert found[0] == ("lost", told.detail), "nothing is told about the time"


async def test_a_restart_watches_again_and_leaves_a_paused_one_alone(api, start):
    await add(api)
    await add(api, name="calm", paused_at=clock.now(), paused_by="ada")
    running = await start()
    await until(synced(running))
    await until(lambda: "calm" in running.clusters)
    calm = running.clusters["calm"]
    assert calm.paused
    assert "ada paused it." in calm.connection.detail

    @sync_to_async
    def ready() -> str:
        return Client().get("/readyz").content.decode()

    await until(lambda: running.clusters["a"].synced)
    assert await ready() == "ok\n"
    await running.resume_cluster("calm")
    await until(lambda: calm.synced)


async def test_what_was_sealed_with_another_key_says_what_to_do(api, start):
    await add(api, sealed="gAAAAA-nonsense")
    running = await start()
    await until(lambda: running.added.says)
    assert running.added.wrong == {"prod": added_clusters.OTHER_KEY}
    assert f"The cluster prod is not watched. {added_clusters.OTHER_KEY}" in running.problem()
    await change(running, sealed=await sync_to_async(sealed)(api), revision=2)
    await until(synced(running))
    assert running.added.says is None


async def test_names_that_are_taken_stay_with_whoever_had_them(api, start):
    await add(api)
    await add(api, name="a")
    running = await start()
    await until(synced(running))
    assert running.added.wrong == {"a": added_clusters.TAKEN}
    api.put(secret("any", {"leaseboard-cluster": "prod"}, kubeconfig=kubeconfig(api.url)))
    await until(lambda: running.secrets.says)
    assert "the settings or an admin of Leaseboard named another cluster prod" in running.problem()


async def test_a_database_that_does_not_answer_ends_nothing(api, start, monkeypatch):
    monkeypatch.setattr(added_clusters, "LOOK_SECONDS", 0.02)
    running = await start()
    await add(api)
    await until(synced(running))
    looked: list[bool] = []

    def read() -> list[AddedCluster]:
        looked.append(True)
        raise DatabaseError("gone")

    monkeypatch.setattr(added_clusters, "_read_rows", read)
    await until(lambda: len(looked) > 2)
    assert "prod" in running.clusters
    assert not running.supervisor.problems()


async def test_history_goes_in_batches_once_every_replica_has_left(api, start, monkeypatch):
    monkeypatch.setattr(added_clusters, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(retention, "CLUSTER_BATCH", 3)
    rows = [to_row(a_change(n, cluster=name)) for n in range(10) for name in ("prod", "a")]
    await ChangeRecord.objects.abulk_create(rows)
    now = clock.now()
    await add(api, sealed="", removed_at=now, removed_by="ada")
    running = await start()
    await asyncio.sleep(0.3)
    assert await ChangeRecord.objects.filter(cluster="prod").acount() == 10
    await AddedCluster.objects.aupdate(removed_at=now - timedelta(minutes=1))
    async with asyncio.timeout(60):
        while await AddedCluster.objects.acount():
            await asyncio.sleep(0.02)
    assert await ChangeRecord.objects.filter(cluster="prod").acount() == 0
    assert await ChangeRecord.objects.filter(cluster="a").acount() == 10
    assert "prod" not in running.clusters


def test_each_batch_is_small(monkeypatch):
    monkeypatch.setattr(retention, "CLUSTER_BATCH", 3)
    ChangeRecord.objects.bulk_create([to_row(a_change(n, cluster="prod")) for n in range(7)])
    deleted = [retention.forget_cluster("prod") for _ in range(4)]
    assert deleted == [3, 3, 1, 0]


# What people did, and what is of several clusters.
STAYS = {"Edit", "Deletion", "Badge", "SavedView"}


def test_all_that_is_known_of_a_cluster_is_deleted_with_it():
    of_cluster = {
        model.__name__
        for model in apps.get_app_config("leases").get_models()
        if "cluster" in {field.name for field in model._meta.concrete_fields}
    }
    assert of_cluster == {model.__name__ for model in retention.OF_CLUSTER} | STAYS
