"""Patches that nobody thought of, compared with what independent libraries make of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leases.apiserver.patch.json_patch import PatchError, json_patch, merge_patch
from tests.apiserver import expected
from tests.apiserver.clients import LEASES, Answer, Client, Process
from tests.apiserver.patch import generated

PATH = f"{LEASES}/one"
PARTS = ("labels", "annotations", "finalizers")
functions = settings(max_examples=2 * settings.default.max_examples, database=None)
requests = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Process(tmp_path_factory.mktemp("generated") / "data") as process:
        client = Client(process.url)
        yield client
        client.close()
        assert "Traceback" not in process.log.read_text()


def put_there(client: Client, lease: dict[str, Any]) -> dict[str, Any]:
    """The Lease as it is stored, whatever was there before."""
    client.call(
        "PATCH",
        PATH,
        {"metadata": {"finalizers": None}},
        content_type="application/merge-patch+json",
    )
    client.call("DELETE", PATH)
    made = client.call("POST", LEASES, lease | {"metadata": {**lease["metadata"], "name": "one"}})
    assert made.status == 201, made.text
    return made.json


def patch(client: Client, kind: str, body: Any) -> Answer:
    return client.call("PATCH", PATH, body, content_type=f"application/{kind}")


def shown(lease: dict[str, Any]) -> dict[str, Any]:
    """What a patch may change; what is empty is not there, and null is an empty text."""
    meta = lease.get("metadata") or {}
    parts = {name: meta[name] for name in PARTS if meta.get(name)}
    for name in ("labels", "annotations"):
        if name in parts:
            parts[name] = {key: value or "" for key, value in parts[name].items()}
    given = lease.get("spec") or {}
    spec = {name: given[name] for name in generated.SPEC if given.get(name) is not None}
    return parts | {"spec": spec}


@functions
@given(generated.documents, generated.documents)
def test_a_merge_patch_is_the_librarys(document: Any, patch: Any) -> None:
    merged = expected.without_nulls(merge_patch(document, patch))
    assert merged == expected.merged(document, patch)


def _is_below(move: dict[str, Any]) -> bool:
    return bool(move["path"].startswith(f"{move['from']}/"))


@functions
@given(st.data())
def test_a_json_patch_is_the_librarys(data: st.DataObject) -> None:
    document = data.draw(generated.objects)
    operations = data.draw(generated.json_patches(document, generated.documents))
    # The API server takes the value away first, and an item after it may have its place then. The
    # library refuses. Source: evanphx/json-patch, Patch.move.
    assume(not any(one["op"] == "move" and _is_below(one) for one in operations))
    before = json.dumps(document)
    try:
        wanted = expected.patched(document, operations)
    except expected.Refused:
        with pytest.raises(PatchError):
            json_patch(document, operations)
    else:
        assert json_patch(document, operations) == wanted
    assert json.dumps(document) == before


@requests
@given(lease=generated.leases, body=generated.merge_patches)
def test_the_server_merges_as_the_library(client: Client, lease: Any, body: Any) -> None:
    stored = put_there(client, lease)
    answer = patch(client, "merge-patch+json", body)
    assert answer.status == 200, answer.text
    assert shown(answer.json) == shown(expected.merged(stored, body))
    assert client.call("GET", PATH).text == answer.text


@requests
@given(data=st.data(), lease=generated.leases)
def test_the_server_patches_as_the_library(client: Client, data: st.DataObject, lease: Any) -> None:
    stored = put_there(client, lease)
    part = data.draw(
        st.sampled_from([name for name in PARTS if name in stored["metadata"]] or [""])
    )
    inner = stored["metadata"][part] if part else stored["spec"]
    root = f"/metadata/{part}" if part else "/spec"
    values = (
        st.sampled_from(["x.y/new", "x.y/z"]) if part else st.just("2024-01-01T00:00:00.000001Z")
    )
    operations = [
        {name: root + text if name in ("path", "from") else text for name, text in one.items()}
        for one in data.draw(generated.json_patches(inner, values))
    ]
    answer = patch(client, "json-patch+json", operations)
    try:
        wanted = expected.patched(stored, operations)
    except expected.Refused:
        assert answer.status == 422, answer.text
        return
    if answer.status == 422:
        # The patch could be carried out; only what came out is no valid Lease.
        assert answer.json["message"] != REFUSED, (stored, operations)
    else:
        assert answer.status == 200, answer.text
        assert shown(answer.json) == shown(wanted)


REFUSED = "the server rejected our request due to an error in our request"


@requests
@given(lease=generated.leases, body=generated.merge_patches)
def test_a_strategic_merge_differs_in_the_finalizers_only(
    client: Client, lease: Any, body: Any
) -> None:
    stored = put_there(client, lease)
    answer = patch(client, "strategic-merge-patch+json", body)
    assert answer.status == 200, answer.text
    found, wanted = shown(answer.json), shown(expected.merged(stored, body))
    before = stored["metadata"].get("finalizers") or []
    given_ = (body.get("metadata") or {}).get("finalizers")
    after = found.pop("finalizers", [])
    wanted.pop("finalizers", None)
    assert found == wanted
    if given_:
        assert sorted(after) == sorted({*before, *given_})
        assert [each for each in after if each in given_] == given_
    elif "finalizers" in (body.get("metadata") or {}) and given_ is None:
        assert after == []
    else:
        assert after == before


@requests
@given(lease=generated.leases, other=generated.leases)
def test_an_apply_sets_what_it_says_and_takes_back_what_it_no_longer_says(
    client: Client, lease: Any, other: Any
) -> None:
    put_there(client, {"metadata": {}, "spec": {}})
    for wanted in (lease, other):
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **wanted}
        data = as_yaml_too(body)
        once, again = (
            client.call(
                "PATCH", PATH, data, content_type="application/apply-patch+yaml", fieldManager="me"
            )
            for _ in range(2)
        )
        assert once.status == 200, once.text
        assert shown(once.json) == shown(wanted)
        assert again.text == once.text


def as_yaml_too(body: Any) -> bytes:
    """JSON that is YAML as well: in that, halves of characters cannot be escaped, and not every
    character can stand for itself.
    """
    text = json.dumps(body, ensure_ascii=False)
    return re.sub("[\x7f-\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text).encode()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | generated.texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(generated.texts, inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "kind", "apiVersion", "metadata", "spec", "name", "generateName", "labels", "annotations",
    "ownerReferences", "finalizers", "managedFields", "uid", "fieldsV1", "controller",
    "holderIdentity", "renewTime", "leaseDurationSeconds", "$patch", "$retainKeys",
    "$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers", "op", "path",
)  # fmt: skip
nearly = st.recursive(
    anything | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=25,
)
KINDS = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
FAILED = "an error on the server; its log tells more"


@settings(requests, max_examples=2 * settings.default.max_examples)
@given(body=nearly, kind=st.sampled_from(KINDS))
def test_no_body_makes_the_server_fail(client: Client, body: Any, kind: str) -> None:
    data = json.dumps(body).encode()
    if client.call("GET", PATH).status == 404:
        put_there(client, {"metadata": {}, "spec": {}})
    answers = [
        client.call("POST", LEASES, data, dryRun="All"),
        client.call("POST", LEASES, data, dryRun="All", content_type="application/yaml"),
        client.call("PUT", PATH, data, dryRun="All"),
        client.call("DELETE", f"{LEASES}/none", data),
        client.call(
            "PATCH", PATH, data, content_type=f"application/{kind}", dryRun="All",
            **({"fieldManager": "me"} if "apply" in kind else {}),
        ),
    ]  # fmt: skip
    for answer in answers:
        assert FAILED not in answer.text, answer.text
        assert answer.status < 500 or answer.json["message"], answer.text
