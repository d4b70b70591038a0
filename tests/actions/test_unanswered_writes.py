"""Rows that a crash left open are closed by what the cluster proves; on the embedded API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from leases.actions.audit import Intent, audited, sending
from leases.actions.unanswered_writes import (
    UNDER_WAY,
    FirstEvent,
    judge_current,
    judge_event,
    resolve,
    unanswered,
)
from leases.apiserver.serving import LeaseApiServer
from leases.domain.lease import ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.models import Edit
from leases.wire.status import ApiError, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("default", "story")
NOW = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)
SOON, LATER = NOW + timedelta(seconds=2), NOW + UNDER_WAY
ACQUIRED, HANDED_OVER = "2026-11-20T11:00:00.000007Z", "2026-11-20T12:00:00.000005Z"
SPEC = {
    "holderIdentity": "cp-1",
    "leaseDurationSeconds": 15,
    "acquireTime": ACQUIRED,
    "leaseTransitions": 3,
}
BODY = {"metadata": {"namespace": "default", "name": "story"}, "spec": SPEC}
HAND_OVER = {"holderIdentity": "cp-2", "acquireTime": HANDED_OVER, "leaseTransitions": 4}


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
async def client(tmp_path):
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    one = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    yield one
    await one.close()
    await server.stop()


async def crashed(client, verb: str, *, sent: bool = True, written: bool = False) -> Edit:
    """A row as a process leaves it that is killed before or after its call."""
    user, _ = await User.objects.aget_or_create(username="ada")
    intent = Intent(user=user, cluster="a", key=KEY, action=f"lease.{verb}", reason="drill", at=NOW)
    current = None if verb == "create" else await client.get(KEY)
    body: dict[str, Any] = {"create": BODY, "delete": {}}.get(
        verb,
        {
            "metadata": {"resourceVersion": current.resource_version if current else ""},
            "spec": HAND_OVER,
        },
    )
    since = await client.newest_version()

    async def run() -> None:
        async with audited(intent, before=current, wanted={}, clock=lambda: NOW) as row:
            if sent:
                await sending(row, verb, body, current=current, at=NOW, since=since)
            if written:
                await write(client, verb, body, current)
            raise Killed

    with pytest.raises(Killed):
        await run()
    await Edit.objects.aupdate(outcome=Edit.INTENDED, closed_at=None, detail="")
    return await Edit.objects.aget()


async def write(client, verb, body, current) -> None:
    if verb == "create":
        await client.create(body)
    elif verb == "delete":
        await client.delete(KEY, uid=current.uid, resource_version=current.resource_version)
    else:
        await client.patch(KEY, body)


async def renew(client) -> None:
    """The holder writes its own values, as an elector that never saw the hand-over."""
    await client.patch(KEY, {"spec": {"renewTime": HANDED_OVER}})


async def verdict(row: Edit, client, *, now=LATER) -> str | None:
    found = await resolve(row, client, now=now)
    await row.arefresh_from_db()
    assert (row.closed_at, row.resolved_at) == ((now, now) if found else (None, None))
    assert row.outcome == (found.outcome if found else "intended")
    return found and found.outcome


@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
async def test_a_request_that_was_never_sent_did_not_happen(client, verb):
    if verb != "create":
        await client.create(BODY)
    row = await crashed(client, verb, sent=False)
    assert await verdict(row, client, now=SOON) is None  # another replica may just be sending it
    assert await verdict(row, client) == "not_done"
    assert "before it sent" in row.detail


@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
async def test_a_request_that_did_not_arrive_did_not_happen(client, verb):
    if verb != "create":
        await client.create(BODY)
    row = await crashed(client, verb)
    assert await verdict(row, client, now=SOON) is None  # it may still be under way
    assert await verdict(row, client) == "not_done"


@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
async def test_a_request_that_was_carried_out_is_done_at_once(client, verb):
    if verb != "create":
        await client.create(BODY)
    row = await crashed(client, verb, written=True)
    assert await verdict(row, client, now=SOON) == "done"
    if verb != "delete":
        assert row.resource_version == (await client.get(KEY)).resource_version


async def test_a_write_that_the_holder_overwrote_since_is_still_proved(client):
    await client.create(BODY)
    row = await crashed(client, "patch", written=True)
    await client.patch(KEY, {"spec": SPEC})
    assert await verdict(row, client, now=SOON) == "done"


@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_a_renewal_that_came_first_proves_that_the_write_failed(client, verb):
    await client.create(BODY)
    row = await crashed(client, verb)
    await renew(client)
    assert await verdict(row, client, now=SOON) == "not_done"
    assert "came first" in row.detail


async def test_a_lease_that_somebody_else_made_was_not_made_by_us(client):
    row = await crashed(client, "create")
    await client.create(BODY | {"spec": {"holderIdentity": "other"}})
    assert await verdict(row, client, now=SOON) == "not_done"


async def test_a_lease_that_another_deletion_removed_after_ours_was_written(client):
    await client.create(BODY)
    row = await crashed(client, "patch", written=True)
    await client.delete(KEY)
    assert await verdict(row, client, now=SOON) == "done"


async def test_a_cluster_that_went_back_proves_nothing_by_its_silence(client):
    await client.create(BODY)
    row = await crashed(client, "patch")
    row.request["resource_version"] = "999999"
    assert await verdict(row, client) == "unknown"


async def test_rows_of_running_requests_and_other_clusters_are_left_alone(client):
    await client.create(BODY)
    row = await crashed(client, "patch")
    assert [one.pk for one in await unanswered(["a"])] == [row.pk]
    assert await unanswered(["b"]) == []
    user = await User.objects.aget()
    intent = Intent(user=user, cluster="a", key=KEY, action="lease.edit", reason="", at=NOW)
    async with audited(intent, before=None, wanted={}, clock=lambda: NOW):
        assert [one.pk for one in await unanswered(["a"])] == [row.pk]


async def test_a_cluster_that_does_not_answer_leaves_the_row_open(client):
    await client.create(BODY)
    row = await crashed(client, "patch", written=True)

    class Silent:
        async def send(self, *_args, **_more):
            raise Unreachable("no route")

    with pytest.raises(ApiError):
        await resolve(row, Silent(), now=LATER)
    assert (await Edit.objects.aget()).outcome == "intended"


def row_of(verb: str, *, changes: list[dict[str, Any]] | None = None) -> Edit:
    request = {"verb": verb, "resource_version": "7", "uid": "u", "sent_at": HANDED_OVER}
    fields = [
        {"field": "spec.holderIdentity", "from": "cp-1", "to": "cp-2"},
        {"field": "spec.acquireTime", "from": ACQUIRED, "to": HANDED_OVER},
    ]
    return Edit(request=request, changes=fields if changes is None else changes)


def current(version: str = "9", *, uid: str = "u", manager: str = "leaseboard", **spec: Any):
    managed = [{"manager": manager}]
    meta = {"resourceVersion": version, "uid": uid, "managedFields": managed}
    return {"metadata": meta, "spec": spec}


OURS = {"holderIdentity": "cp-2", "acquireTime": HANDED_OVER}


@pytest.mark.parametrize(
    ("verb", "found", "outcome"),
    [
        ("patch", current("7", holderIdentity="cp-1"), "not_done"),
        ("patch", current(**OURS), "done"),
        ("patch", current(manager="kubectl", **OURS), "unknown"),
        ("patch", current(holderIdentity="cp-1", acquireTime=ACQUIRED), "not_done"),
        ("patch", current(holderIdentity="cp-1", acquireTime="2026-11-20T12:01:00Z"), "unknown"),
        ("patch", current(uid="other", **OURS), "unknown"),
        ("patch", None, "unknown"),
        ("delete", current(), "not_done"),
        ("delete", current(uid="other"), "unknown"),
        ("delete", None, "unknown"),
        ("create", current(uid="new", **OURS), "done"),
        ("create", current(uid="new", holderIdentity="cp-1"), "unknown"),
        ("create", None, "unknown"),
    ],
)
def test_without_events_only_what_the_lease_proves_is_said(verb, found, outcome):
    judged = judge_current(row_of(verb), found, complete=False, may_arrive=False)
    assert judged is not None
    assert judged.outcome == outcome


def test_an_event_of_another_object_proves_nothing():
    event = FirstEvent("MODIFIED", current(uid="other", **OURS))
    assert judge_event(row_of("patch"), event).outcome == "unknown"


def test_a_deletion_that_finalizers_delay_is_done():
    found = current()
    found["metadata"]["deletionTimestamp"] = HANDED_OVER
    assert judge_event(row_of("delete"), FirstEvent("MODIFIED", found)).outcome == "done"


def test_a_field_that_the_server_drops_does_not_hide_the_write():
    changes = [
        {"field": "spec.strategy", "from": None, "to": "OldestEmulationVersion"},
        {"field": "spec.holderIdentity", "from": "cp-1", "to": "cp-2"},
    ]
    event = FirstEvent("MODIFIED", current(holderIdentity="cp-2"))
    assert judge_event(row_of("patch", changes=changes), event).outcome == "done"
