"""What an apply may hold, and how kubectl's own applies are treated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_values import go_float, go_text, go_word, json_go_syntax
from leases.apiserver.patch.apply import read_applied, type_errors
from leases.apiserver.resources import LEASES as LEASE
from leases.apiserver.serving import LeaseApiServer
from leases.wire.status import ApiError
from tests.apiserver.clients import LEASES
from tests.apiserver.patch.applying import MERGE, apply, owners
from tests.apiserver.watch.streams import call

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HEAD = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ({"spec": {"leaseDurationSeconds": "5"}}, ["numeric (int or float), got string"]),
        ({"spec": {"leaseDurationSeconds": True}}, ["numeric (int or float), got bool"]),
        ({"spec": {"leaseDurationSeconds": [1]}}, ["numeric (int or float), got []interface {}"]),
        ({"spec": {"leaseDurationSeconds": 1.5}}, []),
        ({"spec": {"leaseDurationSeconds": None}}, []),
        ({"spec": {"renewTime": 5}}, []),
        ({"spec": {"renewTime": {"a": 1}}}, ["any scalar, got &{map[a:1]}"]),
        (
            {"spec": {"holderIdentity": {"a": [1, None, "b"]}}},
            [
                (
                    "string, got &value.valueUnstructured{Value:map[string]interface {}"
                    '{"a":[]interface {}{1, interface {}(nil), "b"}}}'
                )
            ],
        ),
        (
            {"metadata": {"ownerReferences": [{"uid": "u", "controller": 1}]}},
            ["boolean, got &{1}"],
        ),
        ({"metadata": {"managedFields": "x"}}, ["list, got &{x}"]),
        ({"metadata": {"generation": 1e300}}, []),
    ],
)
def test_what_does_not_fit_a_type(value: dict[str, Any], errors: list[str]) -> None:
    found = type_errors(value, schema.LEASE)
    assert [error.partition(": expected ")[2] for error in found] == errors


@pytest.mark.parametrize(
    ("meta", "errors"),
    [
        ({"bogus": 1}, [".metadata.bogus: field not declared in schema"]),
        ({"managedFields": [5]}, [".metadata.managedFields[0]: expected map, got &{5}"]),
        (
            {"finalizers": ["a", "a", {"b": 1}, 5]},
            [
                '.metadata.finalizers: duplicate entries for key [="a"]',
                (
                    ".metadata.finalizers: element 2: associative list without keys has an element "
                    "that's a map type"
                ),
            ],
        ),
        (
            {"finalizers": [None]},
            [
                (
                    ".metadata.finalizers: element 0: associative list without keys has an element "
                    "that's an explicit null"
                )
            ],
        ),
        (
            {"ownerReferences": [None]},
            [
                (
                    ".metadata.ownerReferences: element 0: associative list with keys may not have "
                    "a null element"
                )
            ],
        ),
        (
            {"ownerReferences": [{"name": 1}, {}]},
            [
                (
                    '.metadata.ownerReferences[uid=""].name: expected string, '
                    "got &value.valueUnstructured{Value:1}"
                ),
                '.metadata.ownerReferences: duplicate entries for key [uid=""]',
            ],
        ),
    ],
)
def test_paths_name_items_by_their_key(meta: dict[str, Any], errors: list[str]) -> None:
    assert type_errors({"metadata": meta}, schema.LEASE) == errors


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        ({"kind": 5, "apiVersion": "v1"}, "/v1, Kind="),
        ({"kind": "Lease", "apiVersion": 1.5}, "/, Kind=Lease"),
        ({"kind": "Lease", "apiVersion": "a/b/c"}, "/, Kind="),
        ({"kind": "Lease", "apiVersion": "coordination.k8s.io/"}, "coordination.k8s.io/, Kind=L"),
    ],
)
def test_another_type_is_refused(head: dict[str, Any], answer: str) -> None:
    with pytest.raises(ApiError, match=f"invalid object type: {answer}") as error:
        read_applied(json.dumps(head).encode(), LEASE)
    assert error.value.status.code == 400


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"), (1.5, "1.5"), (-2.25, "-2.25"), (100000.0, "100000"), (1e6, "1e+06"),
        (1234567.5, "1.2345675e+06"), (0.0001, "0.0001"), (0.00001, "1e-05"), (0.1, "0.1"),
        (1e300, "1e+300"),
    ],
)  # fmt: skip
def test_floats_look_as_in_go(number: float, text: str) -> None:
    assert go_float(number) == text
    assert go_text({"b": number, "a": [None, True, "x"]}) == f"map[a:[<nil> true x] b:{text}]"
    assert go_word([number, None]) == f"[%!s(float64={text}) %!s(<nil>)]"
    assert json_go_syntax(number) == text


async def test_a_time_that_cannot_be_read_names_the_object(api: LeaseApiServer) -> None:
    answer = await apply(api, "one", renewTime="bad")
    assert answer["code"] == 500
    assert answer["message"].startswith(
        "failed to convert new object (/a; coordination.k8s.io/v1, Kind=Lease) to proper version: "
    )


async def test_a_uid_does_not_create(api: LeaseApiServer) -> None:
    answer = await apply(api, "one", {"uid": "abc"})
    assert answer["code"] == 409
    assert "uid mismatch: the provided object specified uid abc" in answer["message"]


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("x", "invalid syntax"),
        ("-1", "invalid syntax"),
        (str(2**64), "value out of range"),
        ("9" * 5000, "value out of range"),
        (str(2**64 - 1), ""),
        ("0", ""),
    ],
)
async def test_a_version_that_cannot_be_read_does_not_create(
    api: LeaseApiServer, version: str, why: str
) -> None:
    meta = {"name": "a", "resourceVersion": version}
    path = f"{LEASES}/a?dryRun=All"
    put = await call(api.url, "PUT", path, {"metadata": meta})
    applied = await apply(api, "one", {"resourceVersion": version})
    for answer in (put, applied):
        assert answer.get("message") == (
            f'strconv.ParseUint: parsing "{version}": {why}' if why else None
        )


async def test_nothing_applied_owns_nothing(api: LeaseApiServer) -> None:
    await apply(api, "one", holderIdentity="h")
    path = f"{LEASES}/a"
    kept = await call(
        api.url, "PATCH", path, HEAD, content_type="application/apply-patch+yaml",
        fieldManager="two",
    )  # fmt: skip
    assert owners(kept).keys() == {"one"}


async def client_side(api: LeaseApiServer, last: dict[str, Any]) -> None:
    """A Lease as kubectl's client-side apply leaves it."""
    annotations = {LAST_APPLIED: json.dumps(last)}
    meta = {"name": "a", "labels": {"l": "1"}, "annotations": annotations}
    await call(
        api.url, "POST", LEASES, {"metadata": meta, "spec": {"holderIdentity": "h"}},
        fieldManager="kubectl-client-side-apply",
    )  # fmt: skip


LAST = HEAD | {"metadata": {"name": "a", "labels": {"l": "1"}}, "spec": {"holderIdentity": "h"}}


async def test_kubectl_takes_over_what_its_client_side_apply_wrote(api: LeaseApiServer) -> None:
    await client_side(api, LAST)
    answer = await apply(api, "other", holderIdentity="i")
    assert answer["code"] == 409
    taken = await apply(api, "kubectl", {"annotations": {"x": "<&"}}, holderIdentity="i")
    assert taken["spec"] == {"holderIdentity": "i"}
    assert taken["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"annotations":'
        '{"x":"\\u003c\\u0026"},"name":"a"},"spec":{"holderIdentity":"i"}}\n'
    )


@pytest.mark.parametrize(
    "last",
    [
        LAST | {"spec": {"holderIdentity": "changed-since"}},
        LAST | {"apiVersion": "coordination.k8s.io/v1beta1"},
        LAST | {"spec": {"holderIdentity": "h", "bogus": 1}},
        {name: value for name, value in LAST.items() if name != "kind"},
    ],
)
async def test_kubectl_does_not_take_over_the_rest(
    api: LeaseApiServer, last: dict[str, Any]
) -> None:
    await client_side(api, last)
    assert (await apply(api, "kubectl", holderIdentity="i"))["code"] == 409


async def test_only_conflicts_that_are_not_forgiven_are_reported(api: LeaseApiServer) -> None:
    await client_side(api, LAST)
    change = {"spec": {"leaseTransitions": 1}}
    await call(api.url, "PATCH", f"{LEASES}/a", change, content_type=MERGE, fieldManager="elector")
    answer = await apply(api, "kubectl", holderIdentity="i", leaseTransitions=2)
    assert [cause["field"] for cause in answer["details"]["causes"]] == [".spec.leaseTransitions"]


async def test_an_annotation_that_would_be_too_long_goes(api: LeaseApiServer) -> None:
    await client_side(api, LAST)
    long = "x" * (256 * 1024 - 100)
    taken = await apply(api, "kubectl", {"annotations": {"a": long}}, holderIdentity="i")
    assert taken["metadata"]["annotations"] == {"a": long}


@pytest.mark.parametrize("entries", [[], [{}]])
async def test_managed_fields_can_be_reset(api: LeaseApiServer, entries: list[Any]) -> None:
    await apply(api, "one", holderIdentity="h")
    path, meta = f"{LEASES}/a", {"managedFields": entries}
    reset = await call(api.url, "PATCH", path, {"metadata": meta}, content_type=MERGE)
    assert "managedFields" not in reset["metadata"]
    remove = [{"op": "remove", "path": "/metadata/managedFields"}]
    answer = await call(api.url, "PATCH", path, remove, content_type="application/json-patch+json")
    assert answer["code"] == 422


async def test_managed_fields_stay_when_a_patch_removes_them(api: LeaseApiServer) -> None:
    found = await apply(api, "one", holderIdentity="h")
    for kind, body in (
        ("json-patch+json", [{"op": "remove", "path": "/metadata/managedFields"}]),
        ("merge-patch+json", {"metadata": {"managedFields": None}}),
        ("strategic-merge-patch+json", {"metadata": {"managedFields": None}}),
    ):
        kept = await call(api.url, "PATCH", f"{LEASES}/a", body, content_type=f"application/{kind}")
        assert kept["metadata"] == found["metadata"]


async def test_without_a_version_the_fields_of_the_metadata_are_the_objects(
    api: LeaseApiServer,
) -> None:
    await apply(api, "one", holderIdentity="h")
    path = f"{LEASES}/a"
    answer = await call(api.url, "PATCH", path, {"apiVersion": None}, content_type=MERGE)
    assert "name must be provided" in answer["message"]
    patch = {"apiVersion": None, "name": "a"}
    answer = await call(api.url, "PATCH", path, patch, content_type=MERGE)
    assert "must be specified for an update" in answer["message"]
    strict = await call(api.url, "PATCH", path, patch, content_type=MERGE, fieldValidation="Strict")
    unknown = 'strict decoding error: unknown field "metadata", unknown field "spec"'
    assert strict["message"].endswith(unknown)
    patch = {"apiVersion": "v1", "kind": "Pod"}
    answer = await call(api.url, "PATCH", path, patch, content_type=MERGE)
    assert answer["message"].endswith(
        "converting (v1.Pod) to (coordination.Lease): unknown conversion"
    )
