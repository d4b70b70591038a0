"""Secrets add, change and remove clusters while the process runs, over real HTTP."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import Client

from dashboard.board import install_board
from dashboard.config import ClusterSpec, SecretsPlace
from dashboard.log_lines import RedactingFormatter
from dashboard.serving.runtime import Options, Runtime
from leases.kube import cluster_secrets
from leases.kube.cluster_source import ClusterSource, SourceKind, parse_source
from leases.models import WatchSpan
from tests.support.board import browser_of, member
from tests.support.secret_api import SecretApi, argo_cd, cluster_api, kubeconfig, secret, secret_api

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary-0123456789abcdef"
OURS = {"leaseboard-cluster": "ours"}


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


@pytest.fixture
async def api() -> AsyncIterator[SecretApi]:
    async with secret_api("board") as one:
        one.tokens = {"t-1", CANARY}
        yield one


@pytest.fixture
async def running(api: SecretApi, tmp_path: Path) -> AsyncIterator[Runtime]:
    switching = sys.getswitchinterval()
    one = Runtime(
        Options(
            clusters=(ClusterSpec("a", parse_source(f"url:http://t-1@{api.url[7:]}")),),
            data=tmp_path,
            secrets=SecretsPlace(ClusterSource(SourceKind.URL, api.url), "board"),
        )
    )
    install_board(one)
    await one.start()
    yield one
    await one.stop()
    install_board(None)
    sys.setswitchinterval(switching)
    gc.unfreeze()
    await sync_to_async(connections.close_all)()


def live(running: Runtime, *names: str) -> Callable[[], bool]:
    return lambda: (
        set(running.clusters) == set(names) and all(one.synced for one in running.clusters.values())
    )


async def test_all_forms_of_secrets_add_a_cluster_and_take_it_away(api, running):
    api.put(secret("any", OURS, kubeconfig=kubeconfig(api.url, token="t-1\n")))
    api.put(argo_cd("argo", api.url, bearerToken="t-1"))
    api.put(cluster_api("capi", kubeconfig(api.url, token="t-1")))
    labels = {"cluster.x-k8s.io/cluster-name": "capi"}
    api.put(secret("capi-ca", labels, "cluster.x-k8s.io/secret", **{"tls.key": "key"}))
    await until(live(running, "a", "ours", "argo", "capi"))
    assert running.secrets.says is None
    hub = running.publisher.hubs["argo"]
    closed: list[str] = []
    hub.ends.add(closed.append)
    tasks = {task.get_name() for task in asyncio.all_tasks()}
    assert {"watch argo", "incidents argo", "deletions argo"} <= tasks
    api.delete("cluster-argo")
    await until(live(running, "a", "ours", "capi"))
    await until(lambda: "argo" not in running.incidents)
    assert closed == ["argo is watched no longer. Reload the page."]
    assert not [task for task in asyncio.all_tasks() if task.get_name().endswith(" argo")]
    assert "argo" not in {*running.publisher.hubs, *running.deletions, *running.incidents}

    @sync_to_async
    def ends() -> list[str]:
        return list(WatchSpan.objects.filter(cluster="argo").values_list("ended", flat=True))

    async with asyncio.timeout(60):  # what was seen of it stays in history, up to its end
        while await ends() != ["stopped"]:
            await asyncio.sleep(0.05)
    api.put(argo_cd("argo", api.url, bearerToken="t-1"))
    await until(live(running, "a", "ours", "argo", "capi"))


async def test_changed_credentials_are_used_at_once(api, running):
    api.put(secret("any", OURS, kubeconfig=kubeconfig(api.url, token="t-1")))
    await until(live(running, "a", "ours"))
    api.tokens.add("t-2")
    api.put(secret("any", OURS, kubeconfig=kubeconfig(api.url, token="t-2")))
    await until(lambda: "t-2" in api.seen)
    assert live(running, "a", "ours")()


async def test_a_wrong_secret_is_one_sentence_and_leaves_the_others_alone(api, running):
    api.put(secret("any", OURS, kubeconfig=kubeconfig(api.url, token="t-1")))
    api.put(secret("wrong", {"leaseboard-cluster": "wrong"}, kubeconfig=f"{{ {CANARY}"))
    api.put(argo_cd("a", api.url, bearerToken=CANARY))
    await until(lambda: running.secrets.says)
    await until(live(running, "a", "ours"))
    assert running.problem() == (
        "The Secret cluster-a names no cluster that can be watched: the settings or an admin of "
        "Leaseboard named another cluster a. The Secret wrong names no cluster that can be "
        "watched: it is not YAML (line 1)."
    )
    api.delete("wrong")
    api.delete("cluster-a")
    await until(lambda: running.secrets.says is None)


async def test_secrets_that_may_not_be_read_are_a_problem_that_says_what_to_do(tmp_path):
    async with secret_api("board") as api:
        api.refuses = True
        place = SecretsPlace(ClusterSource(SourceKind.URL, api.url), "board")
        one = Runtime(Options(clusters=(), data=tmp_path, secrets=place))
        task = asyncio.create_task(one.secrets.run())
        await until(lambda: one.secrets.says)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert one.problem() == (
        "The Secrets that name clusters cannot be read: secrets is forbidden. Grant get, list and "
        "watch on secrets there, as deploy/components/cluster-secrets does."
    )


async def test_no_page_log_or_metric_shows_a_credential(api, running, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    api.put(secret("any", OURS, kubeconfig=kubeconfig(api.url, token=CANARY)))
    bad = kubeconfig(f"http://u:{CANARY}@127.0.0.1:1", token=CANARY)
    api.put(secret("bad", {"leaseboard-cluster": "bad"}, kubeconfig=bad))
    await until(live(running, "a", "ours"))
    api.tokens.clear()  # now it is refused, which pages and the log say
    await running.change_cluster("ours")
    await until(lambda: "credentials" in running.clusters["ours"].store.connection.detail)

    @sync_to_async
    def pages() -> str:
        browser: Client = browser_of(member("ada", "admin"))
        paths = ("/", "/c/ours/", "/c/ours/wall/", "/readyz", "/metrics", "/audit/")
        answers = [browser.get(path) for path in paths]
        assert {one.status_code for one in answers} <= {200, 302}
        return "".join(one.content.decode() for one in answers)

    shown = await pages()
    assert "ours" in shown
    assert CANARY not in shown
    lines = "\n".join(map(RedactingFormatter().format, caplog.records))
    assert "ours" in lines
    assert CANARY not in lines
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in held if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"exec": {"command": "/bin/sh"}}, "it names a program to run. Leaseboard runs no"),
        ({"auth-provider": {"name": "oidc"}}, "it names a program to run. Leaseboard runs no"),
        ({"tokenFile": "/etc/passwd"}, "its tokenFile is a file. Put what is in the file into"),
        ({"client-key-data": "%"}, "its client-key-data is not base64"),
        ({"token": ["x"]}, "its token, user name or password is no text"),
    ],
)
def test_a_secret_that_could_run_a_program_or_read_a_file_is_refused(user, says):
    one = secret("s", OURS, kubeconfig=kubeconfig("https://x.example.com", **user))
    read = cluster_secrets.Secret(
        cluster_secrets.SecretMetadata("s", labels=one["metadata"]["labels"]), one["data"]
    )
    with pytest.raises(ValueError, match="^" + says[:20]) as refused:
        cluster_secrets.read_cluster(read)
    assert says in str(refused.value)
