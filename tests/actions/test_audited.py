"""A row of the audit trail: open before the call, closed after it; open without an answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from dashboard.serving.tasks.admin_writes import resolve_unanswered
from leases.actions import audit
from leases.actions.audit import Intent, NothingWritten, answered, audited, sending
from leases.models import Edit
from leases.wire.status import ApiError, Invalid, Status, StatusCause, StatusDetails, Unreachable
from tests.support.values.leases import lease

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=2)
HELD = lease("cp-1")
PATCH = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "cp-2"}}


@pytest.fixture
async def intent():
    return Intent(
        user=await User.objects.acreate(username="ada"), cluster="a", key=HELD.key,
        action="lease.edit", reason="drill", at=NOW, address="10.0.0.9", batch="b1", as_user="ada",
    )  # fmt: skip


async def run(intent, end, *, sent=True):
    """An attempt whose call ends in `end`."""
    async with audited(intent, before=HELD, wanted={}, clock=lambda: LATER) as row:
        if sent:
            await sending(row, "patch", PATCH, current=HELD, at=NOW)
        if end is not None:
            raise end
        answered(row, lease("cp-2"))


async def test_the_open_row_says_who_from_where_and_what_before_the_call(intent):
    async with audited(intent, before=HELD, wanted={}, clock=lambda: LATER) as row:
        stored = await Edit.objects.aget()
        assert (stored.outcome, stored.request, stored.changes) == ("intended", {}, [])
        assert (stored.address, stored.batch, stored.as_user) == ("10.0.0.9", "b1", "ada")
        assert row.pk in audit.running
        await sending(row, "patch", PATCH, current=HELD, at=NOW)
        await stored.arefresh_from_db()
        assert stored.changes == [{"field": "spec.holderIdentity", "from": "cp-1", "to": "cp-2"}]
        assert stored.request == {
            "verb": "patch",
            "resource_version": HELD.resource_version,
            "uid": HELD.uid,
            "attempt": 1,
            "sent_at": "2026-11-20T12:00:00.000000Z",
        }
    assert not audit.running


async def test_a_success_notes_the_answer(intent):
    await run(intent, None)
    row = await Edit.objects.aget()
    assert not audit.unsaved
    assert (row.outcome, row.closed_at, row.answer["code"]) == ("done", LATER, 200)
    assert row.resource_version == lease("cp-2").resource_version


async def test_a_refusal_notes_code_reason_and_fields(intent):
    causes = (StatusCause(field="spec.strategy", message="odd"),)
    status = Status(code=422, reason="Invalid", message="no", details=StatusDetails(causes=causes))
    with pytest.raises(Invalid):
        await run(intent, Invalid(status))
    row = await Edit.objects.aget()
    assert (row.outcome, row.closed_at) == ("refused", LATER)
    assert row.answer == {
        "code": 422,
        "reason": "Invalid",
        "message": "no",
        "fields": [{"field": "spec.strategy", "message": "odd"}],
    }


@pytest.mark.parametrize(
    "end",
    [
        Unreachable("cut"),
        ApiError(Status(code=504, reason="Timeout")),
        asyncio.CancelledError(),
        ValueError("odd"),
    ],
)
async def test_a_request_that_may_have_arrived_leaves_the_row_open(intent, end):
    with pytest.raises(type(end)):
        await run(intent, end)
    row = await Edit.objects.aget()
    assert (row.outcome, row.closed_at) == ("intended", None)
    assert not audit.running


@pytest.mark.parametrize(
    ("end", "sent"),
    [(Unreachable("cut"), False), (asyncio.CancelledError(), False), (NothingWritten(), True)],
)
async def test_a_request_that_was_not_sent_is_closed_as_failed(intent, end, sent):
    with pytest.raises(type(end)):
        await run(intent, end, sent=sent)
    row = await Edit.objects.aget()
    assert (row.outcome, row.closed_at) == ("failed", LATER)


async def test_each_attempt_replaces_the_one_before(intent):
    async with audited(intent, before=HELD, wanted={}, clock=lambda: LATER) as row:
        for _ in range(2):
            await sending(row, "delete", {}, current=HELD, at=NOW)
        answered(row)
    row = await Edit.objects.aget()
    assert (row.request["verb"], row.request["attempt"], row.changes) == ("delete", 2, [])


class Looked(Exception):
    """Ends the task that looks again and again, once it has saved what it could."""


async def test_a_row_that_the_database_did_not_take_is_closed_once_it_answers(intent, other):
    """Another process holds the lock for longer than SQLite waits."""
    async with audited(intent, before=HELD, wanted={}, clock=lambda: LATER) as row:
        await sending(row, "patch", PATCH, current=HELD, at=NOW)
        answered(row, lease("cp-2"))
        await other.lock()
    assert row.outcome == "done"
    assert row.pk in audit.running  # else it would be judged by what the cluster shows
    with pytest.raises(OperationalError, match="locked"):
        await audit.save_unsaved()
    await other.let_go()
    assert (await Edit.objects.aget()).outcome == "intended"

    def looked() -> datetime:
        raise Looked

    with pytest.raises(Looked):
        await resolve_unanswered({}, looked)
    stored = await Edit.objects.aget()
    assert (stored.outcome, stored.closed_at, stored.answer["code"]) == ("done", LATER, 200)
    assert not audit.running


async def test_a_request_whose_attempt_was_not_stored_is_not_sent(intent, other):
    async def attempt() -> None:
        async with audited(intent, before=HELD, wanted={}, clock=lambda: LATER) as row:
            await other.lock()
            await sending(row, "patch", PATCH, current=HELD, at=NOW)

    with pytest.raises(OperationalError, match="locked"):
        await attempt()
    await other.let_go()
    await audit.save_unsaved()
    stored = await Edit.objects.aget()
    assert (stored.outcome, stored.request, stored.changes) == ("failed", {}, [])


LOCKS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


class Other:
    """Another process that can hold the database's lock."""

    process: subprocess.Popen[str] | None = None

    @sync_to_async
    def lock(self) -> None:
        self._wait(milliseconds=20)
        name = connection.settings_dict["NAME"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOCKS, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "locked\n"

    @sync_to_async
    def let_go(self) -> None:
        self.end()
        self._wait(milliseconds=20_000)

    def _wait(self, milliseconds: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")

    def end(self) -> None:
        if self.process is not None:
            self.process.communicate()
            self.process = None


@pytest.fixture
def other():
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no lock of the whole")
    one = Other()
    yield one
    one.end()
