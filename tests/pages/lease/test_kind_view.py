"""An admin overrides what a Lease is for."""

from __future__ import annotations

import urllib.parse
import urllib.request
from datetime import UTC, datetime

import pytest
from django.test import Client

from dashboard.serving.runtime import Runtime
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.models import Edit, KindOverride
from tests.support.api_client import LeaseApi
from tests.support.board import KEY
from tests.support.processes import Server, serving, wait_for
from tests.support.programs.lease_apis import lease_api
from tests.support.signing_in import rows, signed_in

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


def test_a_verdict_is_live_without_a_restart_and_outlasts_one(tmp_path):
    with lease_api(tmp_path / "api") as (_, url):
        api = LeaseApi(tmp_path / "api" / "kubeconfig")
        api.create("order-1", holder="a")
        source = f"c=url:{url.replace('://', f'://{api.token}@')}"
        for start in range(2):
            with serving(tmp_path / "data", "--cluster", source) as server:
                browser = signed_in(server)
                if start == 0:
                    the_lease(browser, server)
                    set_kind(browser, f"{server.url}/c/c/leases/default/order-1/", "lock")
                item = the_lease(browser, server)
                assert (item["kind"], item["kind_reason"]) == ("lock", "set by admin")
                assert server.interrupt() == 0


def the_lease(browser: urllib.request.OpenerDirector, server: Server) -> dict[str, object]:
    return wait_for(
        lambda: rows(browser, server, "c").get("default/order-1"), what="the Lease in the list"
    )


def set_kind(browser: urllib.request.OpenerDirector, page: str, word: str) -> None:
    with browser.open(page, timeout=60) as answer:
        token = answer.read().decode().partition('name="csrfmiddlewaretoken" value="')[2][:64]
    form = urllib.parse.urlencode({"kind": word, "csrfmiddlewaretoken": token}).encode()
    with browser.open(urllib.request.Request(f"{page}kind/", form), timeout=60) as answer:
        assert answer.status == 200
