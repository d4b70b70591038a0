"""Methods that no route allows, and odd paths, as kube-apiserver answers them."""

from __future__ import annotations

import pytest

from tests.apiserver.clients import LEASES, VIEWER, Client, Process, lease
from tests.apiserver.codec.wire import exchange
from tests.apiserver.codec.wire import message as request

GROUP = "/apis/coordination.k8s.io"
NOT_FOUND = "404 page not found\n"
KIND = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "FOO", "get", "POST", "PUT"])
@pytest.mark.parametrize(
    ("path", "status"),
    [("/apis", 200), ("/apis/", 200), (GROUP, 200), ("/healthz", 200), ("/readyz/ping", 200),
     ("/nowhere", 404), ("/api", 405), ("/version", 405), (f"{GROUP}/v1", 405)],
)  # fmt: skip
def test_routes_outside_resources_take_every_method_or_get_alone(
    client: Client, method: str, path: str, status: int
) -> None:
    answer = client.call(method, path)
    assert answer.status == status
    assert bool(answer.text) == (method != "HEAD")


def test_a_refusal_names_the_method_as_it_was_sent(process: Process) -> None:
    viewer = Client(process.url, VIEWER)
    expected = viewer.call("Foo", "/logs").json["message"]
    assert expected == 'forbidden: User "viewer" cannot foo path "/logs"'
    expected = viewer.call("Foo", LEASES).json["message"]
    assert 'User "viewer" cannot  resource "leases"' in expected
    viewer.close()


def test_a_method_that_is_no_token_is_refused(process: Process) -> None:
    assert exchange(process.url, request("B(D", "/apis")).code == 400
    assert exchange(process.url, request("B!D", "/apis")).code == 200


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"/{LEASES}", 404, ""),
        ("//version", 404, ""),
        ("/version/x", 404, "the server could not find the requested resource"),
        ("/api/v2", 404, "the server could not find the requested resource"),
        ("/api/v2/pods", 404, "the server could not find the requested resource"),
        ("/apix", 404, ""),
        (f"{LEASES}/a%25b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
        (f"{LEASES}/%2E%2e", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ("/api/v1/namespaces/.", 400, "Name parameter invalid: \".\": may not be '.'"),
        (f"{LEASES}/%22%7f", 404, 'leases.coordination.k8s.io "\\"\\x7f" not found'),
    ],
)
def test_odd_paths(client: Client, path: str, status: int, message: str) -> None:
    answer = client.call("GET", path)
    assert answer.status == status
    assert (answer.json["message"] if message else answer.text) == (message or NOT_FOUND)


@pytest.mark.parametrize(
    ("method", "body", "content_type"),
    [
        ("PUT", lease(".") | KIND, "application/json"),
        ("PATCH", {}, "application/merge-patch+json"),
        ("PATCH", KIND, "application/apply-patch+yaml"),
        ("DELETE", None, ""),
    ],
)
def test_no_write_takes_a_name_of_dots(
    client: Client, method: str, body: object, content_type: str
) -> None:
    query = {"fieldManager": "m"} if "apply" in content_type else {}
    expected = client.call(method, f"{LEASES}/.", body, content_type=content_type, **query)
    assert (expected.status, expected.json["message"]) == (
        400,
        "Name parameter invalid: \".\": may not be '.'",
    )
