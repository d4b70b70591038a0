"""What a cluster would refuse is said beforehand; read-only mode; a write in a person's name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from dashboard import clock
from dashboard.board import install_board
from dashboard.config import EVERY_CLUSTER, ClusterSpec
from dashboard.parts import cluster_write_access
from dashboard.parts.cluster_write_access import known_access, may_write
from dashboard.serving.runtime import Options, Runtime
from leases.apiserver.auth import Tokens
from leases.apiserver.serving import LeaseApiServer
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import ClusterSource, SourceKind, parse_source
from leases.kube.connect import connect
from leases.kube.lease_client import ReadOnly
from leases.models import Edit
from leases.wire.status import Unreachable
from tests.support.board import fill, member
from tests.support.every_url import every_page
from tests.support.url_rules import ADMINS, FORM, RULES

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("kube-system", "scheduler")
BODY = {
    "metadata": {"namespace": KEY.namespace, "name": KEY.name},
    "spec": {"holderIdentity": "cp-1", "leaseDurationSeconds": 15},
}
NEW = {
    "namespace": "default", "name": "made", "holder_identity": "", "duration_seconds": "15",
    "reason": "drill", "once": "a-form", "confirm": "yes",
}  # fmt: skip
Start = Callable[..., "asyncio.Future[Runtime]"]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Boards of two clusters; `a` is an embedded API with one Lease."""
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    tokens = Tokens(tmp_path)
    tokens.replace("ada", "write", "adas-token")
    tokens.replace("bea", "read", "beas-token")
    tokens.close()
    boards: list[Runtime] = []

    async def make(**given: object) -> Runtime:
        specs = (
            ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED)),
            ClusterSpec("b", ClusterSource(SourceKind.IN_CLUSTER)),
        )
        board = Runtime(Options(clusters=specs, data=tmp_path, **given))  # type: ignore[arg-type]
        install_board(board)
        boards.append(board)
        one = board.clusters["a"]
        one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
        fill(one.store, await one.client.create(BODY))
        return board

    yield make  # type: ignore[misc]
    install_board(None)
    for board in boards:
        client = board.clusters["a"].client
        assert client is not None
        await client.close()
    await server.stop()


async def browser_of(name: str) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(member)(name, "admin"))
    return client


def writing_paths(cluster: str) -> list[str]:
    return [
        page.path.replace("/c/a/", f"/c/{cluster}/")
        for page in every_page()
        if page.path.startswith("/c/a/")
        and RULES[page.name].who == ADMINS
        and RULES[page.name].methods == FORM
    ]


@pytest.mark.parametrize("setting", [("a",), (EVERY_CLUSTER,)])
async def test_every_form_of_a_cluster_that_is_only_read_is_refused(start, setting):
    board = await start(read_only=setting)
    fill(board.clusters["b"].store)
    ada = await browser_of("ada")
    paths = writing_paths("a")
    assert "/c/a/leases/new/" in paths
    for path in paths:
        for method in (ada.get, ada.post):
            answer = await method(path)
            assert answer.status_code == 403, path
            assert "LEASEBOARD_READ_ONLY" in answer.content.decode(), path
    assert (await ada.get("/c/b/leases/new/")).status_code == (200 if "a" in setting else 403)


async def test_the_pages_of_a_cluster_that_is_only_read_say_so_and_offer_no_edit(start):
    await start(read_only=("a",))
    ada = await browser_of("ada")
    page = (await ada.get(f"/c/a/leases/{KEY}/")).content.decode()
    assert ">read-only</span>" in page
    assert "<p>Leaseboard only reads this cluster (LEASEBOARD_READ_ONLY).</p>" in page
    assert "<body data-may-edit" not in page
    assert ">read-only</span>" not in (await ada.get("/audit/")).content.decode()


async def test_the_watch_of_a_cluster_that_is_only_read_gets_a_client_that_cannot_write(tmp_path):
    specs = tuple(
        ClusterSpec(name, ClusterSource(SourceKind.URL, "http://127.0.0.1:9"))
        for name in ("a", "b")
    )
    board = Runtime(Options(clusters=specs, data=tmp_path, read_only=("a",)))
    install_board(board)
    await board.start()
    try:
        async with asyncio.timeout(60):
            while not all(one.client for one in board.clusters.values()):
                await asyncio.sleep(0.01)
        with pytest.raises(ReadOnly):
            await board.clusters["a"].writer.create(BODY)
        with pytest.raises(Unreachable):
            await board.clusters["b"].writer.create(BODY)
    finally:
        await board.stop()
        install_board(None)


async def test_a_write_in_the_persons_name_has_the_persons_rights(start):
    board = await start(impersonate=True)
    client = board.clusters["a"].client
    refused = await (await browser_of("bea")).post("/c/a/leases/new/", NEW)
    assert refused.status_code in (403, 502)
    assert "bea" in refused.content.decode()
    done = await (await browser_of("ada")).post("/c/a/leases/new/", NEW | {"once": "another"})
    assert done.status_code == 302, done.content.decode()[-2000:]
    whole = await client.raw_get(ObjectName("default", "made"))
    assert [one["manager"] for one in whole["metadata"]["managedFields"]] == ["leaseboard"]
    rows = [(row.username, row.as_user, row.outcome) async for row in Edit.objects.order_by("id")]
    assert ("ada", "ada", "done") in rows
    assert all(outcome == "refused" for name, _, outcome in rows if name == "bea")


async def test_without_impersonation_the_cluster_sees_leaseboard(start):
    await start()
    done = await (await browser_of("bea")).post("/c/a/leases/new/", NEW)
    assert done.status_code == 302, done.content.decode()[-2000:]
    row = await Edit.objects.aget()
    assert (row.username, row.as_user, row.outcome) == ("bea", "", "done")
    assert row.address == "127.0.0.1"


@pytest.mark.parametrize(
    ("path", "verb"),
    [(f"leases/{KEY}/", "patch"), ("leases/?namespace=kube-system", "create")],
)
async def test_the_form_and_the_page_say_what_the_cluster_would_refuse(start, path, verb):
    """A page asks by itself, once it is drawn; what it knows for a minute it draws at once."""
    await start(impersonate=True)
    for browser, refused in ((await browser_of("bea"), True), (await browser_of("ada"), False)):
        page = (await browser.get(f"/c/a/{path}")).content.decode()
        assert "may not" not in page
        ask = unescape(re.search(r'id="write-rights" hidden hx-get="([^"]+)"', page)[1])
        pages = [await browser.get(one) for one in (ask, f"/c/a/{path}")]
        for part in (one.content.decode() for one in pages):
            assert "hx-get" not in part.partition('id="write-rights"')[2].partition(">")[0]
            for one in (verb, "delete"):
                said = f"The cluster would refuse this: bea may not {one} leases in kube-system."
                assert (said in part) == refused, one
                assert (f'<p id="refused-{one}" data-sure>' in part) == refused, one
        form = (await browser.get(f"/c/a/leases/{KEY}/delete/")).content.decode()
        assert ("bea may not delete leases in kube-system." in form) == refused


async def test_a_list_of_all_namespaces_is_sure_of_no_refusal(start):
    """Whoever may not write everywhere may still write somewhere."""
    await start(impersonate=True)
    part = (
        await (await browser_of("bea")).get("/c/a/rights/?verbs=create,delete")
    ).content.decode()
    assert "bea may not create leases in every namespace of this cluster." in part
    assert "data-sure" not in part


async def test_a_question_about_other_verbs_is_refused(start):
    await start()
    answer = await (await browser_of("ada")).get("/c/a/rights/?verbs=get")
    assert (answer.status_code, answer.content.decode()) == (
        400, "verbs cannot be 'get': use one of patch,delete, create,delete.",
    )  # fmt: skip


async def test_an_answer_is_kept_for_a_minute_for_one_person_namespace_and_verb(start, monkeypatch):
    board = await start(impersonate=True)
    cluster = board.clusters["a"]
    bea = await sync_to_async(member)("bea", "admin")
    ada = await sync_to_async(member)("ada", "admin")
    asked = []

    async def counting(client, verb, namespace, *, within):
        asked.append((verb, namespace))
        return await plain(client, verb, namespace, within=within)

    plain = cluster_write_access.may
    monkeypatch.setattr(cluster_write_access, "may", counting)
    assert known_access(cluster, bea, "default", "patch") is None
    for user, namespace, verb in (
        (bea, "default", "patch"),
        (bea, "default", "patch"),
        (ada, "default", "patch"),
        (bea, "other", "patch"),
        (bea, "default", "delete"),
    ):
        access = await may_write(cluster, user, namespace, verb)
        assert access.allowed is (user is ada)
    assert len(asked) == 4
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(minutes=1))
    assert known_access(cluster, bea, "default", "patch") is None
    await may_write(cluster, bea, "default", "patch")
    assert len(asked) == 5


async def test_a_cluster_that_does_not_answer_forbids_nothing_beforehand(start, monkeypatch):
    board = await start()
    ada = await sync_to_async(member)("ada", "admin")

    async def silent(*_args, **_more):
        raise Unreachable("no route")

    monkeypatch.setattr(cluster_write_access, "may", silent)
    access = await may_write(board.clusters["a"], ada, "default", "patch")
    assert (access.allowed, access.sentence) == (
        None, "The cluster did not say whether it allows this: no route",
    )  # fmt: skip


def test_the_settings_reach_the_clusters(tmp_path):
    specs = (ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED)),)
    one = Runtime(Options(clusters=specs, data=tmp_path, impersonate=True))
    user = User(username="ada")
    assert one.clusters["a"].acting_user(user) == "ada"
    other = Runtime(replace(one.options, impersonate=False, read_only=("b",)))
    assert other.clusters["a"].acting_user(user) == ""
    assert not other.clusters["a"].read_only
