"""Any text that a Lease may hold is stored, found and read back as it was."""

from __future__ import annotations

import json
import random
import string
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection

from leases import models
from leases.actions.audit import Intent, audited
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
from leases.history import export, find_changes
from leases.history.database import from_stored, is_text, to_stored
from leases.history.indexed_search import HistoryFilter, streams, take
from leases.history.states_as_of import ended_terms, states_at
from leases.history.write_batch import write_what_fits
from tests.support.recording import KEY
from tests.support.values.batches import a_batch
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db(transaction=True)


# Letters in no order, or PostgreSQL would compress them to a length that its indexes bear.
LONG = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=3500))  # noqa: S311
NUL = "a\0b"


@pytest.mark.parametrize("holder", [LONG, LONG * 30, "ключ" * 900, "\U0001f511" * 401, NUL, "h"])
def test_every_holder_is_written_and_found_by_an_index(holder):
    found = [a_change(1, holder=holder), a_change(2, previous_holder=holder)]
    alike = a_change(3, holder=holder + "x", previous_holder=holder[:-1] + "y")
    assert write_what_fits(a_batch(a_change(0), *found, alike)) == []
    wanted = HistoryFilter(holder=holder)
    assert find_changes.find("a", wanted, limit=10).changes == found[::-1]
    assert list(find_changes.oldest_first("a", wanted, chunk=1)) == found


@pytest.mark.parametrize("holder", ["\u241b\ufffd", "\u241b\u2400\ufffd", "a\0\ufffd\n\u241b"])
def test_no_text_that_is_written_is_taken_for_bytes_that_are_none(holder):
    assert is_text(to_stored(holder))
    write_what_fits(a_batch(a_change(1, holder=holder)))
    (found,) = find_changes.recent("a", 9)
    assert found.holder == holder


@pytest.mark.parametrize("holder", ["cp-7", LONG])
def test_a_holder_is_never_looked_for_among_all_changes(holder):
    write_what_fits(a_batch(*(a_change(n, holder=f"{n}{LONG}"[:900]) for n in range(300))))
    write_what_fits(a_batch(*(a_change(n) for n in range(300, 3000))))
    plans = []

    def explain(execute, sql, params, many, context):
        with connection.cursor() as cursor:
            cursor.cursor.execute(f"{connection.ops.explain_query_prefix()} {_own(sql)}", params)
            plans.append(str(cursor.fetchall()))
        return execute(sql, params, many, context)

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    sources = streams("a", HistoryFilter(holder=holder))
    with connection.execute_wrapper(explain):
        for source in sources:
            take(source, after=None, newest_first=True, limit=10, budget=100)
    assert plans
    names = ("change_by_holder", "change_by_previous", "change_by_long_holder",
             "change_by_long_previous")  # fmt: skip
    for plan in plans:
        assert any(name in plan for name in names), plan
        assert not any(word in plan for word in ("Seq Scan", "SCAN leases_change")), plan


def _own(sql: str) -> str:
    """The statement with the marks of the database's own driver."""
    return sql.replace("%s", "?") if connection.vendor == "sqlite" else sql


def test_a_holder_with_a_nul_is_read_back_exactly():
    holders = [NUL, "a\N{SYMBOL FOR NULL}b", "\0", "\N{SYMBOL FOR ESCAPE}\0", "ü"]
    changes = [a_change(n, holder=one, previous_holder=one) for n, one in enumerate(holders)]
    write_what_fits(a_batch(*changes))
    found = list(export.changes("a", HistoryFilter()))
    assert found == changes
    assert [json.loads(line)["holder"] for line in export.ndjson(found)] == holders
    assert find_changes.recent("a", 5) == changes[::-1]
    (state,) = states_at("a", [KEY], T0 + timedelta(seconds=0.5))
    assert state.standing.holder == NUL
    assert {one.holder for one in ended_terms("a", [changes[0].kind], T0).ended} == set(holders)


@pytest.mark.parametrize("text", ["", "a", "\0", "␀", "␛", "␛␀", "␛\0", "␀\0␛␛", "a\0␛␀b"])
def test_stored_text_comes_back(text):
    assert "\0" not in to_stored(text)
    assert from_stored(to_stored(text)) == text


def test_the_nul_that_an_earlier_version_stored_is_read_as_one():
    assert from_stored("a␀b") == NUL


async def test_the_audit_trail_takes_any_holder():
    lease = Lease(ObjectMeta(namespace="n", name="x"), LeaseSpec(holder_identity=NUL))
    intent = Intent(
        user=await User.objects.acreate(username="ada"), cluster="a", key=lease.key,
        action="lease.edit", reason=NUL, at=T0,
    )  # fmt: skip
    wanted = {"spec": {"holderIdentity": NUL}}
    with pytest.raises(ValueError, match="odd"):
        async with audited(intent, before=lease, wanted=wanted, clock=lambda: T0):
            raise ValueError(f"odd {NUL}")
    row = await models.Edit.objects.aget()
    assert row.before == {"holderIdentity": "a␀b"}
    assert row.after == {"spec": {"holderIdentity": "a␀b"}}
    assert row.outcome == "failed"
