"""Writing to a Lease: guard, dry run, retry, audit; against the embedded API on a real socket."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User

from leases.actions.audit import AlreadySent, Intent
from leases.actions.write_lease import Guard, Moved, Refused, dry_run, write_lease
from leases.apiserver.serving import LeaseApiServer
from leases.domain.edit import FieldEdit, HandOver, Kept, Release, term_of
from leases.domain.lease import Lease, ObjectName
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.models import Edit as AuditRow
from leases.wire.microtime import format_microtime
from leases.wire.status import Conflict, Invalid, NotFound

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ObjectName("default", "story")
NOW = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)
BODY = {
    "metadata": {"namespace": "default", "name": "story"},
    "spec": {
        "holderIdentity": "cp-1",
        "leaseDurationSeconds": 15,
        "acquireTime": format_microtime(NOW),
        "renewTime": format_microtime(NOW),
        "leaseTransitions": 3,
    },
}


@pytest.fixture
async def client(tmp_path):
    server = LeaseApiServer(data=tmp_path)
    await server.start()
    one = await connect(parse_source("embedded"), kubeconfig=server.kubeconfig)
    await one.create(BODY)
    yield one
    await one.close()
    await server.stop()


@pytest.fixture
async def intent():
    user = await User.objects.acreate(username="m.ferrari")
    return Intent(user=user, cluster="a", key=KEY, action="lease.edit", reason="drill", at=NOW)


DURATION = FieldEdit(spec={"leaseDurationSeconds": 30})


def same_term(seen: str) -> Guard:
    """A guard that refuses any other term."""

    def guard(_: dict[str, Any], current: Lease) -> None:
        if term_of(current) != seen:
            raise Refused

    return guard


def clock():
    return NOW + timedelta(seconds=5)


async def test_a_dry_run_shows_what_would_be_and_writes_nothing(client):
    lease = await client.get(KEY)
    seen = await dry_run(
        client,
        KEY,
        HandOver("cp-2"),
        guard=same_term(term_of(lease)),
        now=NOW,
    )
    assert seen.before["spec"]["holderIdentity"] == "cp-1"
    assert seen.after["spec"]["holderIdentity"] == "cp-2"
    assert (await client.get(KEY)).holder == "cp-1"
    assert not await AuditRow.objects.aexists()


async def test_a_hand_over_begins_a_term_and_leaves_a_closed_audit_row(client, intent):
    lease = await client.get(KEY)
    wanted = HandOver("cp-2")
    await write_lease(client, wanted, intent=intent, guard=same_term(term_of(lease)), clock=clock)
    after = await client.get(KEY)
    assert (after.holder, after.spec.acquire_time, after.spec.lease_transitions) == (
        "cp-2", clock(), 4,
    )  # fmt: skip
    row = await AuditRow.objects.aget()
    assert (row.username, row.outcome, row.reason) == ("m.ferrari", "done", "drill")
    assert row.before["holderIdentity"] == "cp-1"
    assert row.closed_at is not None


async def test_a_release_is_written_as_client_go_does(client, intent):
    lease = await client.get(KEY)
    await write_lease(
        client,
        Release(),
        intent=intent,
        guard=same_term(term_of(lease)),
        clock=clock,
    )
    after = await client.get(KEY)
    assert (after.spec.holder_identity, after.spec.lease_duration_seconds) == ("", 1)


async def test_an_edit_of_another_term_than_shown_is_refused(client, intent):
    seen = term_of(await client.get(KEY))
    await client.patch(KEY, {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 4}})
    with pytest.raises(Moved) as moved:
        await write_lease(
            client,
            HandOver("cp-2"),
            intent=intent,
            guard=same_term(seen),
            clock=clock,
        )
    assert moved.value.lease.holder == "cp-9"
    assert (await client.get(KEY)).holder == "cp-9"


async def test_a_refused_write_is_raised_with_its_causes_and_audited(client, intent):
    lease = await client.get(KEY)
    wanted = FieldEdit(spec={"leaseDurationSeconds": -3})
    with pytest.raises(Invalid) as caught:
        await write_lease(
            client, wanted, intent=intent, guard=same_term(term_of(lease)), clock=clock
        )
    assert caught.value.causes[0].field == "spec.leaseDurationSeconds"
    row = await AuditRow.objects.aget()
    assert row.outcome == "refused"
    assert "must be greater than 0" in row.detail


async def test_a_lease_that_is_gone_is_not_found(client, intent):
    term = term_of(await client.get(KEY))
    await client.delete(KEY)
    with pytest.raises(NotFound):
        await dry_run(client, KEY, HandOver("x"), guard=same_term(term), now=NOW)


async def test_a_holder_faster_than_four_tries_is_a_conflict_and_audited(client, intent):
    lease = await client.get(KEY)
    racing = Meanwhile(client, times=4)
    with pytest.raises(Conflict):
        await write_lease(
            racing, HandOver("cp-2"), intent=intent, guard=same_term(term_of(lease)), clock=clock
        )
    assert (await client.get(KEY)).holder == "cp-1"
    assert (await AuditRow.objects.aget()).outcome == "refused"


@pytest.mark.parametrize(
    ("write", "times"), [(None, 3), ({"metadata": {"labels": {"team": "a"}}}, 1)]
)
async def test_what_others_write_between_reading_and_writing_is_no_obstacle(
    client, intent, write, times
):
    """Three renewals, or a label."""
    lease = await client.get(KEY)
    await write_lease(
        Meanwhile(client, times=times, write=write),
        DURATION,
        intent=intent,
        guard=same_term(term_of(lease)),
        clock=clock,
    )
    after = await client.get(KEY)
    assert after.spec.lease_duration_seconds == 30
    assert (after.metadata.labels is None) is (write is None)
    assert (await AuditRow.objects.aget()).detail == f"written at attempt {times + 1}"


async def test_a_take_over_between_reading_and_writing_is_seen_after_the_409(client, intent):
    """The contender's own write makes ours a 409; the second reading finds another term."""
    lease = await client.get(KEY)
    contender = {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 4}}
    with pytest.raises(Moved) as moved:
        await write_lease(
            Meanwhile(client, times=1, write=contender),
            DURATION,
            intent=intent,
            guard=same_term(term_of(lease)),
            clock=clock,
        )
    assert moved.value.lease.holder == "cp-9"
    after = await client.get(KEY)
    assert (after.holder, after.spec.lease_duration_seconds) == ("cp-9", 15)
    assert (await AuditRow.objects.aget()).outcome == "failed"


async def test_a_write_that_is_cancelled_leaves_an_open_audit_row(client, intent):
    """The person may have closed the page: nobody knows whether the server wrote."""
    lease = await client.get(KEY)
    arrived = asyncio.Event()

    class Unanswered:
        raw_get = staticmethod(client.raw_get)

        async def raw_patch(self, key, body, **options):
            arrived.set()
            await asyncio.Event().wait()

    wanted, term = DURATION, term_of(lease)
    task = asyncio.create_task(
        write_lease(Unanswered(), wanted, intent=intent, guard=same_term(term), clock=clock)
    )
    await arrived.wait()
    row = await AuditRow.objects.aget()
    assert (row.outcome, row.closed_at) == ("intended", None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await row.arefresh_from_db()
    assert (row.outcome, row.detail, row.closed_at) == ("intended", "CancelledError()", None)
    assert row.request["verb"] == "patch"


async def test_a_preview_survives_a_renewal_and_sees_a_take_over(client):
    lease = await client.get(KEY)
    wanted, term = DURATION, term_of(lease)
    seen = await dry_run(Meanwhile(client, times=1), KEY, wanted, guard=same_term(term), now=NOW)
    assert seen.after["spec"]["leaseDurationSeconds"] == 30
    contender = {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 4}}
    with pytest.raises(Moved):
        await dry_run(
            Meanwhile(client, times=1, write=contender), KEY, wanted, guard=same_term(term), now=NOW
        )


class Meanwhile:
    """The API as somebody sees it who is too late: another one writes just before each of the
    first `times` writes; without a `write` that is a renewal."""

    def __init__(self, client, *, times: int, write: dict[str, object] | None = None) -> None:
        self._client = client
        self._left = times
        self._write = write
        self.raw_get = client.raw_get

    async def raw_patch(self, key, body, **options):
        await self._overtake(key)
        return await self._client.raw_patch(key, body, **options)

    async def _overtake(self, key):
        if self._left:
            self._left -= 1
            renewed = clock() + timedelta(seconds=self._left)
            renewal = {"spec": {"renewTime": format_microtime(renewed)}}
            await self._client.patch(key, self._write or renewal)


async def test_a_form_that_is_sent_twice_writes_once(client, intent):
    once = msgspec.structs.replace(intent, once="form-1")
    guard = same_term(term_of(await client.get(KEY)))
    row = await write_lease(client, DURATION, intent=once, guard=guard, clock=clock)
    written = await client.get(KEY)
    assert row.resource_version == written.resource_version
    with pytest.raises(AlreadySent) as sent:
        await write_lease(client, DURATION, intent=once, guard=guard, clock=clock)
    assert sent.value.row.pk == row.pk
    assert (await client.get(KEY)).resource_version == written.resource_version
    assert await AuditRow.objects.acount() == 1


async def test_a_form_that_is_sent_twice_at_once_writes_once(client, intent):
    once = msgspec.structs.replace(intent, once="form-1")
    guard = same_term(term_of(await client.get(KEY)))
    before = int((await client.get(KEY)).resource_version)
    done = await asyncio.gather(
        *(write_lease(client, DURATION, intent=once, guard=guard, clock=clock) for _ in range(4)),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in done) == ["AlreadySent"] * 3 + ["Edit"]
    assert int((await client.get(KEY)).resource_version) == before + 1


async def test_the_audit_row_names_the_fields_and_the_version(client, intent):
    edit = FieldEdit(spec={"leaseDurationSeconds": 30}, labels={"a.b/c.d": "x"})
    guard = same_term(term_of(await client.get(KEY)))
    await write_lease(client, edit, intent=intent, guard=guard, clock=clock)
    row = await AuditRow.objects.aget()
    assert row.after == {"metadata.labels.a.b/c.d": "x", "spec.leaseDurationSeconds": 30}
    assert row.resource_version == (await client.get(KEY)).resource_version


async def test_a_dry_run_says_what_the_server_would_drop_and_warns(client):
    """Without its feature gate a server drops these fields silently."""
    guard = same_term(term_of(await client.get(KEY)))
    edit = FieldEdit(spec={"strategy": "OldestEmulationVersion", "colour": "red"})
    seen = await dry_run(client, KEY, edit, guard=guard, now=NOW)
    assert seen.not_taken == (
        Kept("spec.strategy", "OldestEmulationVersion", None),
        Kept("spec.colour", "red", None),
    )
    assert seen.warnings == ('unknown field "spec.colour"',)
