"""The page of one Lease: live, deleted, unknown."""

from __future__ import annotations

from leases.domain.change import ChangeType
from tests.pages.conftest import remember, text_of
from tests.support.board import KEY


def test_a_lease_has_its_seven_fields_its_changes_and_its_yaml(store, operator):
    remember(ChangeType.TAKEN_OVER, previous_holder="cp-2", holder="cp-1", gap_seconds=12.4)
    html = text_of(operator.get(f"/c/a/leases/{KEY}/"))
    for field in (
        "holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime",
        "leaseTransitions", "strategy", "preferredHolder",
    ):  # fmt: skip
        assert f"<dt>{field}</dt>" in html
    assert "was taken over by <code>cp-1</code> from <code>cp-2</code>" in html
    assert '<span class="key">holderIdentity</span>: cp-1' in html
    assert "others may take it in" in html


def test_a_deleted_lease_keeps_its_page(store, operator):
    remember(ChangeType.DELETED, previous_holder="cp-1", name="past")
    html = text_of(operator.get(f"/c/a/leases/{KEY.namespace}/past/"))
    assert "The Lease is not in the cluster." in html
    assert "last held by <code>cp-1</code>" in html


def test_a_lease_is_an_item_of_the_list_for_programs(store, operator):
    items = operator.get("/c/a/leases/?format=json").json()["items"]
    (listed,) = [one for one in items if one["name"] == KEY.name]
    assert operator.get(f"/c/a/leases/{KEY}/?format=json").json() == listed
    then = "2026-01-01T00:00:00Z"
    for address in (f"{KEY}/?format=json&at={then}", "no/such/?format=json"):
        answer = operator.get(f"/c/a/leases/{address}")
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("Nothing is known of a Lease ")


def test_a_lease_that_nobody_knows_is_404_in_one_sentence(store, operator):
    response = operator.get("/c/a/leases/no/such/")
    assert response.status_code == 404
    assert "There is no Lease no/such in a" in text_of(response)
