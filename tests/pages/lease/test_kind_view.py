"""An admin overrides what a Lease is for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from dashboard.serving.runtime import Runtime
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.models import Edit, KindOverride
from tests.support.board import KEY

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = f"/c/a/leases/{KEY.namespace}/{KEY.name}/"


def kind(board: Runtime) -> tuple[Kind, str]:
    tracked = board.clusters["a"].store.get(KEY)
    assert tracked is not None
    return tracked.kind, tracked.kind_reason


def test_an_admin_says_what_a_lease_is_for_and_takes_it_back(followed: Runtime, admin: Client):
    before = kind(followed)
    assert b"set by" not in admin.get(PAGE).content
    answer = admin.post(f"{PAGE}kind/", {"kind": "lock"}, follow=True)
    assert kind(followed) == (Kind.LOCK, "set by ada")
    page = answer.content.decode()
    assert "is lock from now on" in page
    assert '<option value="lock" selected>' in page
    assert "lock: set by ada" in page
    page = admin.post(f"{PAGE}kind/", {"kind": ""}, follow=True).content.decode()
    assert kind(followed) == before
    assert '<option value="" selected>' in page
    assert not KindOverride.objects.exists()
    shown = [
        (e.username, e.action, e.before, e.after, e.outcome) for e in Edit.objects.order_by("id")
    ]
    assert shown == [
        ("ada", "lease.overrule_kind", {"kind": "election"}, {"kind": "lock"}, "done"),
        ("ada", "lease.overrule_kind", {"kind": "lock"}, {"kind": None}, "done"),
    ]
    assert "is lock, was election" in admin.get("/audit/").content.decode()


def test_users_without_the_right_neither_see_the_form_nor_send_it(
    followed: Runtime, operator: Client, guest: Client
):
    assert b"Set kind" not in operator.get(PAGE).content
    for client in (operator, guest):
        assert client.post(f"{PAGE}kind/", {"kind": "lock"}).status_code == 403
    assert "/sign-in/" in Client().post(f"{PAGE}kind/", {"kind": "lock"})["Location"]
    assert kind(followed)[0] is Kind.ELECTION
    assert not Edit.objects.exists()


def test_an_unknown_kind_is_refused(followed: Runtime, admin: Client):
    page = admin.post(f"{PAGE}kind/", {"kind": "leader"}, follow=True).content.decode()
    assert "Nothing was changed. Kind is one of: as the rules decide, election, " in page
    assert kind(followed)[0] is Kind.ELECTION


def test_a_lease_that_is_gone_cannot_be_judged(followed: Runtime, admin: Client):
    assert admin.post("/c/a/leases/n/gone/kind/", {"kind": "lock"}).status_code == 404


async def test_the_checkpoint_of_another_replica_is_used(followed: Runtime):
    await KindOverride.objects.acreate(
        cluster="a", namespace=KEY.namespace, name=KEY.name, kind="identity", username="bo",
        at=datetime.now(UTC),
    )  # fmt: skip
    other = ObjectName("n", "elsewhere")
    await KindOverride.objects.acreate(
        cluster="b", namespace=other.namespace, name=other.name, kind="lock", username="bo",
        at=datetime.now(UTC),
    )  # fmt: skip
    await followed.overrides.refresh()
    assert kind(followed) == (Kind.IDENTITY, "set by bo")
