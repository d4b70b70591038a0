"""DeleteOptions in the body or in the query of a delete, over HTTP."""

from __future__ import annotations

import pytest

from tests.apiserver.clients import LEASES, Client, lease

SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
UNREADABLE = "couldn't get version/kind; json parse error: "
YAML = "application/yaml"
WRONG_TYPE = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b'{"a":fals', "", UNREADABLE + "invalid character ' ' in literal false (expecting 'e')"),
        (b'{"a":"\\', "", UNREADABLE + "invalid character ' ' in string escape code"),
        (b"[1", "", UNREADABLE + "unexpected end of JSON input"),
        (b'{"KIND":1}', "", UNREADABLE + WRONG_TYPE.format("number", ".kind", "string")),
        (b'{"kind":"Table","apiVersion":"meta.k8s.io/v1"}', "",
         "converting (v1.Table) to (v1.DeleteOptions): unknown conversion"),
        (b'{"kind":"Table","apiVersion":"v1"}', "",
         f'no kind "Table" is registered for version "v1" in scheme "{SCHEME}"'),
        (b'{"apiVersion":"apps/"}', "",
         "Object 'apiVersion' is missing in '{\"apiVersion\":\"apps/\"}'"),
        (b"dryRun: yes", YAML, WRONG_TYPE.format("bool", "DeleteOptions.dryRun", "[]string")),
        (b"preconditions: {uid: 1.0}", YAML,
         WRONG_TYPE.format("number", "Preconditions.preconditions.uid", "types.UID")),
        (b"a: [", YAML, "yaml: line 1: did not find expected node content"),
    ],
)  # fmt: skip
def test_a_malformed_body_is_a_bad_request_and_deletes_nothing(
    client: Client, body: bytes, content_type: str, message: str
) -> None:
    client.call("POST", LEASES, lease("kept"))
    for path in (f"{LEASES}/kept", LEASES):
        answer = client.call("DELETE", path, body, content_type=content_type or "application/json")
        assert (answer.status, answer.json["message"]) == (400, message)
    assert client.call("GET", f"{LEASES}/kept").status == 200


@pytest.mark.parametrize("version", ["v1", "apps/v1", "", "/", "/v1"])
def test_options_of_every_group_are_taken(client: Client, version: str) -> None:
    client.call("POST", LEASES, lease("gone"))
    body = {"kind": "DeleteOptions", "apiVersion": version}
    assert client.call("DELETE", f"{LEASES}/gone", body).status == 200


def test_the_query_names_preconditions(client: Client) -> None:
    client.call("POST", LEASES, lease("guarded"))
    for path in (f"{LEASES}/guarded", LEASES):
        answer = client.call("DELETE", path, resourceVersion="1")
        assert answer.status == 409
        assert "the ResourceVersion in the precondition (1)" in answer.json["message"]
    assert client.call("DELETE", f"{LEASES}/guarded", uid="", resourceVersion="").status == 200


def test_a_namespace_is_guarded_by_preconditions(client: Client) -> None:
    path = "/api/v1/namespaces"
    made = client.call("POST", path, {"metadata": {"name": "guarded"}}).json["metadata"]
    uid, version = made["uid"], made["resourceVersion"]
    for query, message in (
        ({"uid": "x"}, f"UID in precondition: x, UID in object meta: {uid}"),
        ({"resourceVersion": "1"},
         f"ResourceVersion in precondition: 1, ResourceVersion in object meta: {version}"),
    ):  # fmt: skip
        answer = client.call("DELETE", f"{path}/guarded", **query)
        assert (answer.status, answer.json["message"]) == (
            409,
            'Operation cannot be fulfilled on namespaces "guarded": Precondition failed: '
            + message,
        )
    query = {"uid": uid, "resourceVersion": version}
    assert client.call("DELETE", f"{path}/guarded", **query).status == 200
