"""The form that deletes one Lease, against the embedded API."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.forms.what_happens import of_delete
from dashboard.parts.formatting import when
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.models import Edit
from leases.wire.microtime import format_microtime
from leases.wire.status import NotFound
from tests.support.board import fill, member
from tests.support.values.tracked_leases import NOW, tracked

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("default", "scheduler")
PATH = "/c/a/leases/default/scheduler/delete/"


async def held_by(cluster, holder: str) -> None:
    now = format_microtime(datetime.now(UTC))
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 3,
    }
    body = {"metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": spec}
    fill(cluster.store, await cluster.client.create(body))


async def drawn(admin: AsyncClient) -> dict[str, str]:
    """The hidden fields of the form."""
    answer = await admin.get(PATH)
    assert answer.status_code == 200
    page = answer.content.decode()
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {name: found[name] for name in ("seen_term", "once")}


def typed(sent: dict[str, str], **more: str) -> dict[str, str]:
    return sent | {"typed_name": str(KEY), "reason": "drill"} | more


async def test_it_is_deleted_and_audited(cluster, admin):
    await held_by(cluster, "cp-1")
    answer = await admin.post(PATH, typed(await drawn(admin)))
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    with pytest.raises(NotFound):
        await cluster.client.get(KEY)
    row = await Edit.objects.aget()
    assert (row.action, row.outcome, row.reason) == ("lease.delete", "done", "drill")
    assert row.before["holderIdentity"] == "cp-1"
    assert row.request["verb"] == "delete"


async def test_the_page_asks_the_server_first_and_deletes_nothing(cluster, admin):
    await held_by(cluster, "cp-1")
    page = (await admin.get(PATH)).content.decode()
    assert "The API server would delete it" in page
    assert "Transitions restart at 0 (now 3)." in page
    assert (await cluster.client.get(KEY)).holder == "cp-1"
    assert not await Edit.objects.aexists()


async def test_a_renewal_in_between_is_no_conflict(cluster, admin):
    await held_by(cluster, "cp-1")
    sent = typed(await drawn(admin))
    await cluster.client.patch(KEY, {"spec": {"renewTime": format_microtime(datetime.now(UTC))}})
    assert (await admin.post(PATH, sent)).status_code == 302
    with pytest.raises(NotFound):
        await cluster.client.get(KEY)


async def test_another_holder_in_between_is_shown_and_nothing_deleted(cluster, admin):
    await held_by(cluster, "cp-1")
    sent = typed(await drawn(admin))
    taken = {"holderIdentity": "cp-2", "acquireTime": "2026-11-20T12:04:21.000000Z"}
    before = datetime.now(UTC)
    await cluster.client.patch(KEY, {"spec": taken})
    answer = await admin.post(PATH, sent)
    page = answer.content.decode()
    assert answer.status_code == 409
    since = re.search(r"Not deleted: cp-2 holds it by now, since (.*?)<", page)
    assert since is not None
    now = datetime.now(UTC)
    assert when(before, now) <= since[1] <= when(now, now)
    assert "12:04:21" not in page
    assert "drill" in page
    assert (await cluster.client.get(KEY)).holder == "cp-2"
    again = re.findall(r'name="(seen_term|once)" value="([^"]*)"', page)
    assert (await admin.post(PATH, typed(dict(again)))).status_code == 302


async def test_a_holder_of_a_vacant_lease_is_shown_and_no_term_is_said_to_have_ended(
    cluster, admin
):
    await held_by(cluster, "")
    page = (await admin.get(PATH)).content.decode()
    assert "Nobody holds it." in page
    sent = typed(await drawn(admin))
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "eve"}})
    page = (await admin.post(PATH, sent)).content.decode()
    assert "Not deleted: eve holds it by now, since" in page
    assert "the term ended" not in page
    assert "Nobody holds it" not in page


async def test_one_that_was_made_anew_in_between_is_not_deleted(cluster, admin):
    await held_by(cluster, "cp-1")
    sent = typed(await drawn(admin))
    await cluster.client.delete(KEY)
    await held_by(cluster, "cp-1")
    assert (await admin.post(PATH, sent)).status_code == 409
    assert (await cluster.client.get(KEY)).holder == "cp-1"


async def test_one_that_is_gone_already_is_said(cluster, admin):
    await held_by(cluster, "cp-1")
    sent = typed(await drawn(admin))
    await cluster.client.delete(KEY)
    answer = await admin.post(PATH, sent)
    assert answer.status_code == 409
    assert "gone already" in answer.content.decode()


async def test_a_resend_deletes_once(cluster, admin):
    await held_by(cluster, "cp-1")
    sent = typed(await drawn(admin))
    assert (await admin.post(PATH, sent)).status_code == 302
    await held_by(cluster, "cp-1")
    assert (await admin.post(PATH, sent)).status_code in (302, 409)
    assert (await cluster.client.get(KEY)).holder == "cp-1"
    assert await Edit.objects.filter(outcome="done").acount() == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"typed_name": "default/schedule"}, "This is not default/scheduler."),
        ({"typed_name": ""}, "Type the name"),
        ({"reason": ""}, "Say why"),
        ({"seen_term": ""}, "Open it again"),
    ],
)
async def test_an_incomplete_form_deletes_nothing(cluster, admin, more, said):
    await held_by(cluster, "cp-1")
    answer = await admin.post(PATH, typed(await drawn(admin), **more))
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert (await cluster.client.get(KEY)).holder == "cp-1"


@pytest.mark.parametrize("role", ["operator", None])
async def test_only_who_may_edit_deletes(cluster, role):
    await held_by(cluster, "cp-1")
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(member)("olga", role))
    assert (await client.get(PATH)).status_code == 403
    assert (await client.post(PATH, typed({"seen_term": "x"}))).status_code == 403
    assert (await AsyncClient().post(PATH)).status_code == 302
    forger = AsyncClient(enforce_csrf_checks=True)
    await forger.aforce_login(await sync_to_async(member)("ada", "admin"))
    assert (await forger.post(PATH, typed({"seen_term": "x"}))).status_code == 403
    cluster.read_only = True
    forger.handler.enforce_csrf_checks = False
    assert (await forger.get(PATH)).status_code == 403
    assert (await forger.post(PATH, typed({"seen_term": "x"}))).status_code == 403
    assert (await cluster.client.get(KEY)).holder == "cp-1"


async def test_what_the_server_would_refuse_is_said(cluster, admin):
    await held_by(cluster, "cp-1")
    await cluster.client.delete(KEY)
    page = (await admin.get(PATH)).content.decode()
    assert "The server said no to a dry run" in page


def test_a_live_election_may_have_two_holders_for_a_while():
    one = tracked(phase=Phase.HELD, kind=Kind.ELECTION)
    said = " ".join(of_delete(one, NOW).sentences)
    assert "two may act at once, for up to 12 s." in said
    assert "10 s by client-go's default" in said
    title = of_delete(one, one.observed_at + timedelta(seconds=1.2)).title
    assert title.startswith("Renewed 1.2 s ago")


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("phase", list(Phase))
def test_every_lease_has_something_to_say(kind, phase):
    one = tracked(phase=phase, kind=kind)
    happens = of_delete(one, NOW)
    assert happens.title
    said = happens.sentences
    assert len(said) >= 3
    assert all(sentence.endswith(".") for sentence in said)
