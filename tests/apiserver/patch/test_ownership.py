"""Who owns which field, over the wire: the managedFields after updates and applies."""

from __future__ import annotations

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import LEASES, lease
from tests.apiserver.patch.applying import MERGE, apply, owners
from tests.apiserver.watch.streams import call


async def test_items_of_lists_are_owned_one_by_one(api: LeaseApiServer) -> None:
    await apply(api, "one", {"finalizers": ["x.io/1"]})
    both = await apply(api, "two", {"finalizers": ["x.io/2"]})
    assert both["metadata"]["finalizers"] == ["x.io/1", "x.io/2"]
    assert owners(both)["two"]["f:metadata"] == {"f:finalizers": {'v:"x.io/2"': {}}}
    left = await apply(api, "one")
    assert left["metadata"]["finalizers"] == ["x.io/2"]


async def test_an_owner_reference_is_owned_as_a_whole(api: LeaseApiServer) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    await apply(api, "one", {"ownerReferences": [owner]})
    answer = await apply(api, "two", {"ownerReferences": [{**owner, "name": "m"}]})
    assert answer["code"] == 409
    (cause,) = answer["details"]["causes"]
    assert cause["field"] == '.metadata.ownerReferences[uid="u"]'
    assert cause["message"] == 'conflict with "one"'


async def test_a_value_that_two_apply_stays_until_both_let_go(api: LeaseApiServer) -> None:
    await apply(api, "one", holderIdentity="h")
    shared = await apply(api, "two", holderIdentity="h")
    assert owners(shared).keys() == {"one", "two"}
    assert "time" not in next(
        entry for entry in shared["metadata"]["managedFields"] if entry["manager"] == "two"
    )
    assert (await apply(api, "one"))["spec"] == {"holderIdentity": "h"}
    assert (await apply(api, "two"))["spec"] == {}


async def test_gated_fields_are_booked_but_not_kept(api: LeaseApiServer) -> None:
    made = await apply(api, "one", strategy="OldestEmulationVersion")
    assert made["spec"] == {}
    assert owners(made)["one"] == {"f:spec": {"f:strategy": {}}}
    answer = await apply(api, "two", strategy="example.com/other")
    assert answer["code"] == 409


async def test_an_untracked_lease_is_tracked_from_its_first_apply(api: LeaseApiServer) -> None:
    await call(api.url, "POST", LEASES, lease("a"))
    change = {"spec": {"holderIdentity": "x"}}
    changed = await call(api.url, "PATCH", f"{LEASES}/a", change, content_type=MERGE)
    assert owners(changed) == {}
    applied = await apply(api, "one", leaseDurationSeconds=5)
    assert owners(applied)["before-first-apply"] == {"f:spec": {"f:holderIdentity": {}}}


async def test_all_fields_of_a_wrong_type_are_reported_at_once(api: LeaseApiServer) -> None:
    answer = await apply(api, "one", holderIdentity=5, zz=1)
    assert answer["code"] == 500
    assert answer["message"].endswith(
        "errors:\n"
        "  .spec.holderIdentity: expected string, got &value.valueUnstructured{Value:5}\n"
        "  .spec.zz: field not declared in schema"
    )
