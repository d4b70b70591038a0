"""The form that creates a Lease, against the embedded API."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard import clock
from dashboard.pages import create
from leases.apiserver.serving import LeaseApiServer
from leases.domain.change import Change, ChangeType
from leases.domain.edit import NewLease
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.models import Edit
from leases.wire.status import NotFound
from tests.support.board import fill, member
from tests.support.scripted_api import ScriptedServer, answer
from tests.support.values.change_rows import to_row

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/c/a/leases/new/"
KEY = ObjectName("default", "ledger-writer")
TYPED = {
    "namespace": "default",
    "name": "ledger-writer",
    "holder_identity": "",
    "duration_seconds": "15",
    "transitions": "",
    "strategy": "",
    "preferred_holder": "",
    "labels": "",
    "annotations": "",
    "reason": "drill",
    "once": "a-form",
}
SAVE = {"confirm": "yes"}


def errors_of(page: str, field: str) -> str:
    """What the page says at one field."""
    found = re.search(rf'<div id="id_{field}_error">(.*?)</div>', page, re.DOTALL)
    return re.sub(r"<[^>]+>|\s+", " ", found[1]) if found else ""


async def test_a_preview_shows_what_the_server_would_store_and_writes_nothing(cluster, admin):
    answer = await admin.post(PATH, TYPED | {"reason": ""})
    page = answer.content.decode()
    assert answer.status_code == 200, page[-2000:]
    assert "The server would take this" in page
    assert "holderIdentity: &#x27;&#x27;" in page
    assert "It starts vacant." in page
    with pytest.raises(NotFound):
        await cluster.client.get(KEY)
    assert not await Edit.objects.aexists()


async def test_a_vacant_lease_names_an_empty_holder_and_no_times(cluster, admin):
    answer = await admin.post(PATH, TYPED | SAVE)
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    spec = (await cluster.client.raw_get(KEY))["spec"]
    assert spec == {"holderIdentity": "", "leaseDurationSeconds": 15}
    row = await Edit.objects.aget()
    assert (row.action, row.outcome, row.reason) == ("lease.create", "done", "drill")


async def test_a_held_lease_begins_as_client_go_begins_it(cluster, admin):
    typed = {
        "holder_identity": "cp-1",
        "labels": "app=shop, tier=web",
        "annotations": "team/owner=a, b\nnote=x=y",
    }
    await admin.post(PATH, TYPED | SAVE | typed)
    whole = await cluster.client.raw_get(KEY)
    spec = whole["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("cp-1", 0)
    assert spec["acquireTime"] == spec["renewTime"]
    assert datetime.fromisoformat(spec["renewTime"]).tzinfo is not None
    assert whole["metadata"]["labels"] == {"app": "shop", "tier": "web"}
    assert whole["metadata"]["annotations"] == {"team/owner": "a, b", "note": "x=y"}


async def test_a_resend_of_the_form_writes_once(cluster, admin):
    first = await admin.post(PATH, TYPED | SAVE)
    again = await admin.post(PATH, TYPED | SAVE)
    assert (first.status_code, again.status_code) == (302, 302)
    assert await Edit.objects.acount() == 1


async def test_one_that_exists_is_not_touched_and_nothing_typed_is_lost(cluster, admin):
    await cluster.client.create(NewLease(key=KEY, holder="cp-1").body(now=datetime.now(UTC)))
    answer = await admin.post(PATH, TYPED | SAVE | {"labels": "app=shop"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "default/ledger-writer exists" in page
    assert "app=shop" in page
    assert (await cluster.client.get(KEY)).holder == "cp-1"


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("name", "Ledger_writer", "Try ledger-writer."),
        ("namespace", "No.Dots", "Try no-dots."),
        ("duration_seconds", "0", "1 second or more"),
        ("duration_seconds", "soon", "whole seconds"),
        ("labels", "app", "Write each label as key=value"),
        ("labels", "a=1,a=2", "there twice"),
        ("holder_identity", "a\tb", "one line"),
        # The API server says these.
        ("labels", "a b=1", "name part must consist of"),
        ("namespace", "nowhere", "no such namespace"),
        ("strategy", "Best", "Unsupported value"),
        ("preferred_holder", "cp-2", "may only be specified"),
    ],
)
@pytest.mark.parametrize("confirm", [{}, SAVE])
async def test_an_error_stands_at_its_field(cluster, admin, field, typed, said, confirm):
    answer = await admin.post(PATH, TYPED | confirm | {field: typed})
    page = answer.content.decode()
    assert answer.status_code == 422, page[-3000:]
    assert said in errors_of(page, field)
    assert 'id="problems"' in page


async def test_a_reason_is_needed_to_save(cluster, admin):
    answer = await admin.post(PATH, TYPED | SAVE | {"reason": ""})
    assert answer.status_code == 422
    assert "Say why" in errors_of(answer.content.decode(), "reason")


async def test_what_the_server_would_drop_is_said(board, tmp_path_factory, admin):
    """With its feature gate off, the server drops the fields of coordinated elections."""
    server = LeaseApiServer(data=tmp_path_factory.mktemp("gate-off"))
    await server.start()
    one = board.clusters["a"]
    one.client = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    page = (await admin.post(PATH, TYPED | {"strategy": "OldestEmulationVersion"})).content.decode()
    await one.client.close()
    await server.stop()
    assert "The server would drop strategy" in page
    assert "It starts vacant." in page


async def test_what_the_server_warns_of_is_said(board, admin):
    """As an admission webhook of a cluster warns."""
    api = ScriptedServer()
    stored = NewLease(key=KEY).body(now=datetime.now(UTC))
    api.script(
        "verb",
        answer(201, stored, Warning='299 - "payments is frozen", 299 - "name a team"'),
        answer(201, {"status": {"allowed": True}}),
    )
    async with api.running():
        one = board.clusters["a"]
        one.client = await connect(parse_source(f"url:{api.url}"), kubeconfig=())
        page = (await admin.post(PATH, TYPED)).content.decode()
        await one.client.close()
    assert api.seen("verb")[0].query["dryRun"] == "All"
    assert "<h3>The server warns</h3>" in page
    assert "<li>payments is frozen</li><li>name a team</li>" in page


async def test_the_url_fills_in_the_form(cluster, admin):
    page = (await admin.get(f"{PATH}?namespace=payments&name=x&duration_seconds=30")).content
    assert b'value="payments"' in page
    assert b'value="30"' in page


@pytest.mark.parametrize("role", ["operator", None])
async def test_only_who_may_edit_opens_the_form(cluster, role):
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(member)("olga", role))
    assert (await client.get(PATH)).status_code == 403
    assert (await client.post(PATH, TYPED | SAVE)).status_code == 403
    assert (await AsyncClient().post(PATH, TYPED | SAVE)).status_code == 302
    assert not await Edit.objects.aexists()


async def test_a_cluster_that_is_only_read_has_no_form(cluster, admin):
    cluster.read_only = True
    assert (await admin.get(PATH)).status_code == 403
    assert (await admin.post(PATH, TYPED | SAVE)).status_code == 403
    assert not await Edit.objects.aexists()


async def test_what_the_cluster_would_refuse_is_said_beforehand(cluster, admin):
    kept = cluster.verdicts
    kept["", "default", "create"] = (clock.now(), False)
    page = (await admin.get(f"{PATH}?namespace=default")).content.decode()
    assert "Leaseboard may not create leases in default" in page
    assert 'name="confirm"' not in page


async def test_a_forged_token_is_refused(cluster):
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(await sync_to_async(member)("ada", "admin"))
    assert (await client.post(PATH, TYPED | SAVE)).status_code == 403
    assert not await Edit.objects.aexists()


async def test_the_way_leads_to_the_new_lease_once_watch_and_history_tell_of_it(
    cluster, admin, monkeypatch
):
    """History has another of this name, which was deleted; the page would show its end."""

    def remember(change: ChangeType, version: str) -> None:
        now = datetime.now(UTC)
        known = {"cluster": "a", "namespace": "default", "name": "ledger-writer", "uid": version}
        to_row(
            Change(
                change=change, at=now, observed_at=now, kind=Kind.ELECTION,
                resource_version=version, holder="me-1", **known,
            )
        ).save()  # fmt: skip

    async def watched() -> None:
        fill(cluster.store, await cluster.client.get(KEY))

    async def written() -> None:
        version = (await cluster.client.get(KEY)).resource_version
        await sync_to_async(remember)(ChangeType.CREATED, version)

    steps = [watched, written]

    async def look(_: float) -> None:
        await steps.pop(0)()

    await sync_to_async(remember)(ChangeType.DELETED, "1")
    monkeypatch.setattr(create, "LOOKS", 3)
    monkeypatch.setattr(create, "asyncio", SimpleNamespace(sleep=look))
    answer = await admin.post(PATH, TYPED | SAVE | {"holder_identity": "me-1"})
    assert answer["Location"] == "/c/a/leases/default/ledger-writer/"
    assert steps == []
    page = (await admin.get(answer["Location"])).content.decode()
    assert "default/ledger-writer was created." in page
    assert "No holder is known" not in page


async def test_without_word_of_the_watch_the_way_leads_to_the_list(cluster, admin):
    answer = await admin.post(PATH, TYPED | SAVE)
    assert answer["Location"] == "/c/a/leases/"
    page = (await admin.get(answer["Location"])).content.decode()
    assert "The list shows it once the cluster reports it." in page
