"""Patches as kube-apiserver applies them, beyond the recorded cases."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest

from leases.apiserver.codec import schema
from leases.apiserver.patch.json_patch import PatchError, json_patch, merge_patch
from leases.apiserver.patch.strategic_merge import StrategicError, strategic_merge

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


def lease(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **meta}, "spec": {"holderIdentity": "x"}}


def strategic(before: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """The metadata after the patch."""
    patch = {"metadata": deepcopy(meta)}
    after: dict[str, Any] = strategic_merge(deepcopy(before), patch, schema.LEASE)["metadata"]
    return after


def test_finalizers_merge_as_a_set_and_new_ones_come_first() -> None:
    before = lease(finalizers=["a", "b"])
    assert strategic(before, finalizers=["c", "a"])["finalizers"] == ["c", "a", "b"]


def test_owners_merge_by_uid() -> None:
    other = {**OWNER, "uid": "v"}
    after = strategic(
        lease(ownerReferences=[OWNER]), ownerReferences=[other, {"uid": "u", "name": "m"}]
    )
    assert after["ownerReferences"] == [other, {**OWNER, "name": "m"}]


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ([{"$patch": "delete", "uid": "u"}], []),
        ([{"$patch": "replace"}, {**OWNER, "uid": "w"}], [{**OWNER, "uid": "w"}]),
    ],
)
def test_directives_in_a_list(patch: list[Any], after: list[Any]) -> None:
    assert (
        strategic(lease(ownerReferences=[OWNER]), ownerReferences=patch)["ownerReferences"] == after
    )


def test_a_strategic_merge_can_order_a_list() -> None:
    after = strategic(
        lease(finalizers=["a", "b", "c"]), **{"$setElementOrder/finalizers": ["c", "a"]}
    )
    assert after["finalizers"] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("meta", "code", "answer"),
    [
        (
            {"labels": {"$patch": "bogus"}},
            500,
            "unknown patch type: bogus in map: map[$patch:bogus]",
        ),
        ({"ownerReferences": [{"name": "x"}]}, 500, "does not contain declared merge key: uid"),
        (
            {"ownerReferences": [{"$patch": "merge", "uid": "u"}]},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"ownerReferences": [{"$patch": 5, "uid": "u"}]},
            500,
            "unknown patch type: %!s(int64=5) in map: map[$patch:5 uid:u]",
        ),
        ({"$retainKeys": ["name"], "labels": {"a": "b"}}, 400, "patch format of retainKeys"),
        ({"$retainKeys": "name"}, 400, "patch format of retainKeys"),
        ({"$setElementOrder": []}, 400, "patch format of setElementOrder list"),
        ({"$deleteFromPrimitiveList": []}, 400, "patch format of primitive list"),
        ({"$setElementOrder/finalizers": "x"}, 500, "{}, but received a string"),
        ({"$setElementOrder/finalizers": None}, 500, "but received a %!s(<nil>)"),
        ({"$setElementOrder/labels": []}, 500, "received a map[string]interface {}"),
        ({"$setElementOrder/generateName": []}, 500, "expected slice or array type, but got"),
        ({"$setElementOrder/bogus": []}, 500, 'in struct ObjectMeta for the json field "bogus"'),
        (
            {"labels": {"$setElementOrder/k": []}},
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            {"labels": {"$setElementOrder/x": []}},
            500,
            "merging an object in json but data type is not struct, instead is: map",
        ),
        ({"$setElementOrder/ownerReferences": ["u"]}, 500, "value for key 0 is not a map."),
        ({"$setElementOrder/ownerReferences": [{}]}, 500, "map: map[] does not contain declared"),
        (
            {"$setElementOrder/managedFields": [], "managedFields": []},
            500,
            "no elements in any of the given slices",
        ),
        ({"finalizers": [5]}, 500, "list element types are not identical: [[a] [5]]"),
        ({"finalizers": [{"a": 1}]}, 500, "list element types are not identical: [[a] [map[a:1]]]"),
        (
            {"$deleteFromPrimitiveList/ownerReferences": ["u"]},
            500,
            "list element types are not identical: [[map[apiVersion:v1",
        ),
    ],
)
def test_bodies_that_cannot_be_merged(meta: dict[str, Any], code: int, answer: str) -> None:
    before = lease(labels={"k": "v"}, finalizers=["a"], ownerReferences=[OWNER])
    with pytest.raises(StrategicError, match=re.escape(answer)) as error:
        strategic(before, **meta)
    assert error.value.code == code


def test_lists_of_lists_cannot_be_merged() -> None:
    with pytest.raises(StrategicError, match="lists of lists are not supported") as error:
        strategic_merge({"finalizers": []}, {"finalizers": [["x"]]}, schema.OBJECT_META)
    assert error.value.code == 422


@pytest.mark.parametrize(
    ("meta", "after"),
    [
        ({"$deleteFromPrimitiveList/finalizers": ["a", "z"]}, {"finalizers": ["b"]}),
        ({"$deleteFromPrimitiveList/none": ["a"]}, {}),
        ({"$deleteFromPrimitiveList/name": "b"}, {"name": "b"}),
        ({"$retainKeys": ["name"]}, None),
        ({"labels": {"$patch": "replace", "x": "y"}}, {"labels": {"x": "y"}}),
        ({"labels": {"$patch": "delete"}}, {"labels": {}}),
        ({"annotations": {"$patch": "delete", "x": "y"}}, {}),
        ({"annotations": {"x": None, "y": "z"}}, {"annotations": {"y": "z"}}),
        ({"generateName": {"$retainKeys": []}}, {"generateName": {"$retainKeys": []}}),
    ],
)
def test_directives_in_a_map(meta: dict[str, Any], after: dict[str, Any] | None) -> None:
    before = lease(labels={"k": "v"}, finalizers=["a", "b"])
    wanted = {"name": "a"} if after is None else before["metadata"] | after
    assert strategic(before, **meta) == wanted


def test_a_merge_patch_prunes_nulls() -> None:
    assert merge_patch(
        {"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": None}, "e": {"f": None}}
    ) == {
        "b": {"c": 2},
        "e": {},
    }


def test_a_merge_patch_prunes_nulls_of_objects_in_lists() -> None:
    patch = {"a": [None, {"b": None, "c": [{"d": None}]}]}
    assert merge_patch({"a": [1]}, patch) == {"a": [None, {"c": [{}]}]}
    assert merge_patch({"a": {}}, patch) == patch


def test_names_on_the_way_are_sorted() -> None:
    document = {"b": {"z": 1, "y": {"d": 1, "c": 2}}, "a": {"z": 1, "y": 2}}
    added = {"op": "add", "path": "/b/x", "value": {"n": 1, "m": 2}}
    after = json_patch(document, [added])
    assert [list(part) for part in (after, after["b"], after["a"], after["b"]["x"])] == [
        ["a", "b"], ["x", "y", "z"], ["z", "y"], ["n", "m"],
    ]  # fmt: skip
    merged = merge_patch(document, {"c": {"s": 1, "r": 2}, "b": {"x": 1}})
    assert [list(part) for part in (merged, merged["b"], merged["a"], merged["c"])] == [
        ["a", "b", "c"], ["x", "y", "z"], ["z", "y"], ["r", "s"],
    ]  # fmt: skip


DOCUMENT = {"a": {"b": [1, 2, 3]}, "n": None}


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "replace", "path": "/new", "value": 1}, {**DOCUMENT, "new": 1}),
        ({"op": "add", "path": "/a"}, {"a": None, "n": None}),
        ({"op": "add", "path": "/a/b/-", "value": 4}, {"a": {"b": [1, 2, 3, 4]}, "n": None}),
        ({"op": "remove", "path": "/a/b/-1"}, {"a": {"b": [1, 2]}, "n": None}),
        ({"op": "remove", "path": "ignored/n"}, {"a": {"b": [1, 2, 3]}}),
        ({"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "n": None, "c": [1, 2, 3]}),
        ({"op": "copy", "from": "/a/b/0", "path": "/n"}, {"a": {"b": [1, 2, 3]}, "n": 1}),
        ({"op": "copy", "from": "/none", "path": "/a"}, {"a": None, "n": None}),
        ({"op": "test", "path": "/n"}, DOCUMENT),
        ({"op": "replace", "path": "", "value": {}}, {}),
    ],
)
def test_operations_with_the_habits_of_the_library(operation: dict[str, Any], after: Any) -> None:
    assert json_patch(DOCUMENT, [operation]) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/none"},
        {"op": "replace", "path": "/a/b/3", "value": 1},
        {"op": "add", "path": "/a/b/9", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "test", "path": "/a/b/0", "value": True},
        {"op": "copy", "from": "/none/x", "path": "/n"},
        {"op": "copy", "path": "/n"},
        {"op": "move", "path": "/n"},
        {"op": "turn", "path": "/n"},
        {"path": "/n"},
        {"op": "remove"},
        "remove",
    ],
)
def test_operations_that_cannot_be_applied(operation: Any) -> None:
    with pytest.raises(PatchError):
        json_patch(DOCUMENT, [operation])
