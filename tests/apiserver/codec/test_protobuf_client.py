"""A client that takes nothing but protobuf reads what a JSON client reads, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apiserver.clients import LEASES, Client, Process
from tests.apiserver.codec.proto_client import KIND, ProtoClient, pack
from tests.apiserver.patch import generated

CANDIDATES = LEASES.replace("/v1/", "/v1beta1/").replace("leases", "leasecandidates")
BETA = "coordination.k8s.io/v1beta1"
TABLE = "as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
owners = st.lists(
    st.fixed_dictionaries(
        {name: st.just("x") for name in ("apiVersion", "kind", "name")}
        | {"uid": st.sampled_from("abcdef")},
        optional={"controller": st.just(False), "blockOwnerDeletion": st.booleans()},
    ),
    max_size=2,
    unique_by=lambda owner: owner["uid"],
)
metadata = st.fixed_dictionaries(
    {}, optional=generated.METADATA | {"ownerReferences": owners, "generation": st.integers(1, 9)}
)
specs = st.fixed_dictionaries(
    {},
    optional=generated.SPEC
    | {
        "acquireTime": st.none() | generated.moments,
        "strategy": st.sampled_from(["OldestEmulationVersion", "a.b/c"]),
    },
)


def lease(meta: dict[str, Any], spec: dict[str, Any]) -> bytes:
    return pack("Lease", {"metadata": meta, "spec": spec})


class Both:
    """One server, read with protobuf and with JSON."""

    def __init__(self, url: str) -> None:
        self.proto = ProtoClient(url)
        self.json = Client(url)
        self.call = self.proto.call

    def read(self, path: str, **query: str) -> dict[str, Any]:
        """What a path gives, which must be the same in both."""
        status, found = self.proto.call("GET", path, **query)
        answer = self.json.call("GET", path, **query)
        assert (status, found) == (answer.status, answer.json)
        return found

    def watch(self, accept: str = "", **query: str) -> list[tuple[str, dict[str, Any]]]:
        """The events of a second, which must be the same in both."""
        query |= {"watch": "1", "timeoutSeconds": "1"}
        found = self.proto.watch(LEASES, accept=f"{KIND}{accept}", **query)
        lines = self.json.call("GET", LEASES, accept=f"application/json{accept}", **query).text
        events = [json.loads(line) for line in lines.splitlines()]
        assert found == [(event["type"], event["object"]) for event in events]
        return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    gate = ("--feature-gates", "CoordinatedLeaderElection=true")
    with Process(tmp_path_factory.mktemp("proto") / "data", *gate) as process:
        both = Both(process.url)
        yield both
        both.proto.close()
        both.json.close()
        assert "Traceback" not in process.log.read_text()


@settings(database=None)
@given(metadata, specs, specs)
def test_a_lease_lives_its_life_in_protobuf(
    both: Both, meta: dict[str, Any], spec: dict[str, Any], renewed: dict[str, Any]
) -> None:
    path, meta = f"{LEASES}/one", meta | {"name": "one"}
    status, made = both.call("POST", LEASES, lease(meta, spec))
    assert (status, made.get("spec")) == (201, spec), made
    asked = {name: value for name, value in meta.items() if value}
    assert {name: made["metadata"].get(name) for name in asked} == asked
    assert both.read(path) == made
    status, done = both.call("PUT", path, pack("Lease", made | {"spec": renewed}))
    assert (status, done["spec"]) == (200, renewed)
    assert both.read(path) == done
    assert both.read(LEASES)["items"] == [{name: done[name] for name in ("metadata", "spec")}]
    bare = {name: value for name, value in done["metadata"].items() if name != "finalizers"}
    assert both.call("PUT", path, lease(bare, renewed))[1]["metadata"]["name"] == "one"
    status, gone = both.call("DELETE", path)
    assert (status, gone["details"]["uid"]) == (200, made["metadata"]["uid"])


def test_a_watch_in_protobuf_shows_what_one_in_json_shows(both: Both) -> None:
    _, start = both.call("GET", LEASES)
    _, made = both.call("POST", LEASES, lease({"name": "seen", "labels": {"a": "b"}}, {}))
    _, done = both.call(
        "PUT", f"{LEASES}/seen", pack("Lease", made | {"spec": {"holderIdentity": ""}})
    )
    both.call("POST", LEASES, lease({"name": "other"}, {"leaseDurationSeconds": 3}))
    both.call("DELETE", f"{LEASES}/seen")
    since = {"resourceVersion": start["metadata"]["resourceVersion"]}
    expected = both.watch(**since)
    assert [kind for kind, _ in expected] == ["ADDED", "MODIFIED", "ADDED", "DELETED"]
    assert [lease for _, lease in expected[:2]] == [made, done]
    assert [kind for kind, _ in both.watch(labelSelector="a", **since)] == [
        "ADDED", "MODIFIED", "DELETED",
    ]  # fmt: skip
    (added, end) = both.watch(allowWatchBookmarks="1")
    assert (added[0], added[1]["metadata"]["name"]) == ("ADDED", "other")
    assert (end[0], end[1]["spec"]) == ("BOOKMARK", {})
    assert end[1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    ((kind, error),) = both.watch(resourceVersion="1")
    assert (kind, error["kind"], error["code"]) == ("ERROR", "Status", 410)
    ((_, partial),) = both.watch(accept=f";{PARTIAL.format('')}")
    assert (partial["kind"], set(partial)) == (
        "PartialObjectMetadata", {"kind", "apiVersion", "metadata"},
    )  # fmt: skip
    both.call("DELETE", f"{LEASES}/other")


def test_errors_come_as_the_same_status(both: Both) -> None:
    assert both.read(f"{LEASES}/absent")["code"] == 404
    assert both.read(LEASES, labelSelector="a=(")["code"] == 400
    assert both.read(LEASES, resourceVersionMatch="Bad")["code"] == 422
    assert both.read("/apis/coordination.k8s.io/v1/nothing/else")["code"] == 404
    for spec in ({"leaseDurationSeconds": -1, "leaseTransitions": -1}, {"preferredHolder": "x"}):
        code, refused = both.call(
            "POST", LEASES, lease({"name": "wrong", "labels": {"-": "x"}}, spec)
        )
        answer = both.json.call(
            "POST", LEASES, {"metadata": {"name": "wrong", "labels": {"-": "x"}}, "spec": spec}
        )
        assert (code, refused) == (422, answer.json)


def test_delete_options_count(both: Both) -> None:
    both.call("POST", LEASES, lease({"name": "kept"}, {}))
    for options, code in (
        ({"preconditions": {"uid": "another"}}, 409),
        ({"preconditions": {"resourceVersion": "1"}}, 409),
        ({"propagationPolicy": "Sideways"}, 422),
        ({"dryRun": ["All"], "gracePeriodSeconds": 0}, 200),
        ({"propagationPolicy": "Background"}, 200),
        ({}, 404),
    ):
        body = pack("DeleteOptions", options, "v1")
        assert both.call("DELETE", f"{LEASES}/kept", body)[0] == code, options


def test_lists_continue_and_other_resources(both: Both) -> None:
    for name in ("a", "b", "c"):
        both.call("POST", LEASES, lease({"name": name}, {}))
    _, page = both.call("GET", LEASES, limit="2")
    assert page["metadata"]["remainingItemCount"] == 1
    _, rest = both.call("GET", LEASES, limit="2", **{"continue": page["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in page["items"] + rest["items"]] == ["a", "b", "c"]
    spec = {
        "leaseName": "a", "binaryVersion": "1.36.0", "emulationVersion": "1.35.0",
        "strategy": "OldestEmulationVersion", "renewTime": "2026-11-22T13:00:00.000001Z",
    }  # fmt: skip
    body = pack("LeaseCandidate", {"metadata": {"name": "me"}, "spec": spec}, BETA)
    assert both.call("POST", CANDIDATES, body)[1]["spec"] == spec
    assert both.read(CANDIDATES)["items"][0]["spec"] == spec
    body = pack("Namespace", {"metadata": {"name": "new"}}, "v1")
    assert both.call("POST", "/api/v1/namespaces", body)[1]["status"] == {"phase": "Active"}
    assert len(both.read("/api/v1/namespaces")["items"]) > 4
    for path in ("/apis/coordination.k8s.io/v1", "/api/v1"):
        assert both.read(path)["resources"]
    both.call("DELETE", LEASES)


@pytest.mark.parametrize(
    ("accept", "path", "code", "content_type"),
    [
        (f"{KIND},application/json", "x", 404, KIND),
        (f"application/json,{KIND}", "x", 404, "application/json"),
        (f"{KIND};{TABLE}", "", 406, "application/json"),
        (f"{KIND};{TABLE},application/json;{TABLE}", "", 200, "application/json"),
        (f"{KIND};{PARTIAL.format('List')},application/json", "", 200, KIND),
        (f"{KIND};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "/apis", 200, None),
        (KIND, "/version", 406, KIND),
        (KIND, "/", 200, "application/json"),
        (KIND, "/api", 200, KIND),
        (KIND, "/apis", 200, KIND),
        (KIND, "/apis/coordination.k8s.io", 200, KIND),
    ],
)
def test_the_accept_header_decides(
    both: Both, accept: str, path: str, code: int, content_type: str | None
) -> None:
    target = path if path.startswith("/") else f"{LEASES}/{path}".rstrip("/")
    response = both.json.send("GET", target, accept=accept)
    data = response.read()
    found = content_type or accept
    assert (response.status, response.headers["Content-Type"]) == (code, found)
    assert data.startswith(b"k8s\0") == found.startswith(KIND)


def test_a_review_is_answered_in_protobuf(both: Both) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {
        "resourceAttributes": {"verb": "get", "group": "coordination.k8s.io", "resource": "leases"}
    }
    asked = pack("SelfSubjectAccessReview", {"spec": spec}, "authorization.k8s.io/v1")
    code, found = both.call("POST", path, asked)
    assert (code, found["spec"], found["status"]["allowed"]) == (201, spec, True)
