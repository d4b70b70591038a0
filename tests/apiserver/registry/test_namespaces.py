"""Namespaces and objects on their way out: what an update restores, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.clients import LEASES, Client, Process

NAMESPACES = "/api/v1/namespaces"
LABEL = "kubernetes.io/metadata.name"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("namespaces") / "data") as process:
        yield process


@pytest.fixture
def client(server: Process) -> Iterator[Client]:
    one = Client(server.url)
    yield one
    one.close()


def test_the_label_of_the_name_cannot_be_removed(client: Client) -> None:
    made = client.call("POST", NAMESPACES, {"metadata": {"name": "kept"}}).json
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, f"f:{LABEL}": {}}}}
    path = f"{NAMESPACES}/kept"
    replaced = client.call("PUT", path, {"metadata": {"name": "kept", "labels": {"a": "b"}}})
    assert replaced.json["metadata"]["labels"] == {"a": "b", LABEL: "kept"}
    patched = client.call("PATCH", path, {"metadata": {"labels": None}}, content_type=MERGE)
    assert patched.json["metadata"]["labels"] == {LABEL: "kept"}


def test_an_update_creates_none(client: Client) -> None:
    answer = client.call("PUT", f"{NAMESPACES}/none", {"metadata": {"name": "none"}})
    assert (answer.status, answer.json["message"]) == (404, 'namespaces "none" not found')


def test_status_and_finalize_change_their_part_alone(client: Client) -> None:
    client.call("POST", NAMESPACES, {"metadata": {"name": "parts"}})
    path = f"{NAMESPACES}/parts"
    spec, status = {"finalizers": ["kubernetes", "example.com/held"]}, {"phase": "Terminating"}
    whole = {"metadata": {"name": "parts"}, "spec": spec, "status": status}
    replaced = client.call("PUT", path, whole).json
    first = ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert (replaced["spec"], replaced["status"]) == first
    finalized = client.call("PUT", f"{path}/finalize", whole).json
    assert (finalized["spec"], finalized["status"]) == (spec, {"phase": "Active"})
    patched = client.call("PATCH", f"{path}/status", {"status": status}, content_type=MERGE).json
    assert (patched["spec"], patched["status"]) == (spec, status)
    assert client.call("GET", f"{path}/status").json == patched
    client.call("PATCH", f"{path}/status", {"status": {"phase": "Active"}}, content_type=MERGE)
    refused = [client.call(method, f"{path}/finalize").status for method in ("GET", "DELETE")]
    assert refused == [405, 405]
    verbs = {
        each["name"]: each["verbs"] for each in client.call("GET", "/api/v1").json["resources"]
    }
    assert verbs["namespaces/finalize"] == ["update"]
    assert verbs["namespaces/status"] == ["get", "patch", "update"]


def names(client: Client, selector: str) -> set[str]:
    answer = client.call("GET", NAMESPACES, fieldSelector=selector)
    assert answer.status == 200, answer.text
    return {item["metadata"]["name"] for item in answer.json["items"]}


def test_one_that_ends_can_be_selected_and_labelled(client: Client) -> None:
    client.call("POST", NAMESPACES, {"metadata": {"name": "ending"}})
    held = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    client.call("POST", LEASES.replace("/default/", "/ending/"), held)
    assert client.call("DELETE", f"{NAMESPACES}/ending").status == 200
    assert names(client, "status.phase=Terminating") == {"ending"}
    assert "ending" not in names(client, "status.phase!=Terminating")
    change = {"metadata": {"labels": {"late": "yes"}}}
    answer = client.call("PATCH", f"{NAMESPACES}/ending", change, content_type=MERGE)
    assert answer.status == 200, answer.text
    assert "deletionGracePeriodSeconds" not in answer.json["metadata"]


def test_other_fields_do_not_select(client: Client) -> None:
    answer = client.call("GET", NAMESPACES, fieldSelector="metadata.namespace=x")
    said = (answer.status, answer.json["message"])
    assert said == (400, "field label not supported: metadata.namespace")


def test_the_grace_period_of_a_deleted_lease_cannot_be_changed(client: Client) -> None:
    held = {"metadata": {"name": "grace", "finalizers": ["example.com/held"]}}
    client.call("POST", LEASES, held)
    client.call("DELETE", f"{LEASES}/grace")
    for value, status in ((None, 200), (0, 200), (5, 422)):
        change = {"metadata": {"deletionGracePeriodSeconds": value}}
        answer = client.call("PATCH", f"{LEASES}/grace", change, content_type=MERGE)
        assert answer.status == status, answer.text
    assert (
        "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"
        in (answer.json["message"])
    )
