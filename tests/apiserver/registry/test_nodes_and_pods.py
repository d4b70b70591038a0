"""Nodes and Pods: kept as they come, with two endpoints each, chosen by fields, shown as tables."""

from __future__ import annotations

from typing import Any

import pytest

from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.codec.proto_client import KIND, field
from tests.apiserver.watch.streams import Watch, call, exchange, request

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def ready(status: str) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "reason": "KubeletReady"}


def node(name: str, **spec: Any) -> dict[str, Any]:
    status = {"conditions": [ready("True")], "capacity": {"cpu": "4", "pods": "110"}}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def pod(name: str, node_name: str = "", **container: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "a", **container}]
    spec = {"nodeName": node_name, "containers": containers} if node_name else {}
    return {"metadata": {"name": name}, "spec": spec or {"containers": containers}}


async def code(api: LeaseApiServer, method: str, path: str, body: Any = None, **more: str) -> int:
    status, _, _ = await exchange(api.url, request(method, path, body, **more))
    return status


async def test_members_that_no_type_names_are_kept(api: LeaseApiServer) -> None:
    spec = {"unschedulable": False, "taints": [{"key": "a", "odd": {"b": [1, 1.5, {}]}}], "new": {}}
    await call(api.url, "POST", NODES, node("n", **spec))
    found = await call(api.url, "GET", f"{NODES}/n")
    assert found["spec"] == spec
    assert found["status"]["capacity"] == {"cpu": "4", "pods": "110"}


async def test_metadata_is_validated(api: LeaseApiServer) -> None:
    refused = await call(api.url, "POST", NODES, node("Not_A_Name"))
    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, "metadata.name")


async def test_the_object_and_its_status_have_an_endpoint_each(api: LeaseApiServer) -> None:
    await call(api.url, "POST", NODES, node("n"))
    both = {"spec": {"podCIDR": "10.0.0.0/24"}, "status": {"phase": "Running"}}
    await call(api.url, "PATCH", f"{NODES}/n", both, content_type=MERGE)
    found = await call(api.url, "GET", f"{NODES}/n")
    assert (found["spec"], found["status"].get("phase")) == ({"podCIDR": "10.0.0.0/24"}, None)
    more = {"spec": {"podCIDR": "10.1.0.0/24"}, "status": {"phase": "Running"}}
    await call(api.url, "PATCH", f"{NODES}/n/status", more, content_type=MERGE)
    found = await call(api.url, "GET", f"{NODES}/n/status")
    assert (found["spec"], found["status"]["phase"]) == ({"podCIDR": "10.0.0.0/24"}, "Running")
    entries = found["metadata"]["managedFields"]
    assert [entry.get("subresource") for entry in entries] == [None, "status"]
    assert entries[1]["fieldsV1"] == {"f:status": {"f:phase": {}}}
    assert await code(api, "DELETE", f"{NODES}/n/status") == 405
    assert await code(api, "GET", f"{NODES}/n/scale") == 404


async def test_a_new_pod_is_pending_until_its_status_is_written(api: LeaseApiServer) -> None:
    new = await call(api.url, "POST", PODS, pod("p") | {"status": {"phase": "Running"}})
    assert new["status"] == {"phase": "Pending"}
    new["status"] = {"phase": "Running", "podIP": "10.0.0.7"}
    assert (await call(api.url, "PUT", f"{PODS}/p", new))["status"] == {"phase": "Pending"}
    written = await call(api.url, "PUT", f"{PODS}/p/status", new | {"metadata": {"name": "p"}})
    assert written["status"] == new["status"]


async def test_a_put_creates_neither(api: LeaseApiServer) -> None:
    for path, body in ((NODES, node("n")), (PODS, pod("n")), (PODS, pod("status"))):
        name = body["metadata"]["name"]
        assert await code(api, "PUT", f"{path}/{name}", body) == 404
        assert await code(api, "PUT", f"{path}/{name}/status", body) == 404


async def test_lists_with_a_key_are_merged(api: LeaseApiServer) -> None:
    await call(api.url, "POST", NODES, node("n"))
    patch = {
        "status": {"conditions": [{"type": "DiskPressure", "status": "False"}, ready("False")]}
    }
    found = await call(api.url, "PATCH", f"{NODES}/n/status", patch, content_type=STRATEGIC)
    conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert conditions == {"Ready": "False", "DiskPressure": "False"}
    await call(api.url, "POST", PODS, pod("p", env=[{"name": "A", "value": "1"}]))
    added = {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}}
    found = await call(api.url, "PATCH", f"{PODS}/p", added, content_type=STRATEGIC)
    (container,) = found["spec"]["containers"]
    assert (container["image"], len(container["env"])) == ("a", 2)


@pytest.mark.parametrize(
    ("path", "selector", "names"),
    [
        (PODS, "spec.nodeName=n1", ["a", "b"]),
        (PODS, "spec.nodeName!=n1", ["c"]),
        (PODS, "spec.nodeName=n1,metadata.name=b", ["b"]),
        (PODS, "status.phase=Pending", ["a", "b", "c"]),
        (PODS, "status.phase=Running", []),
        (PODS, "spec.hostNetwork=false,spec.nodeName=", ["c"]),
        (NODES, "spec.unschedulable=true", ["n2"]),
        (NODES, "spec.unschedulable=false", ["n1"]),
    ],
)
async def test_field_selectors(
    api: LeaseApiServer, path: str, selector: str, names: list[str]
) -> None:
    for one in (pod("a", "n1"), pod("b", "n1"), pod("c")):
        await call(api.url, "POST", PODS, one)
    await call(api.url, "POST", NODES, node("n1"))
    await call(api.url, "POST", NODES, node("n2", unschedulable=True))
    found = await call(api.url, "GET", path, fieldSelector=selector)
    assert [item["metadata"]["name"] for item in found["items"]] == names


async def test_an_unknown_field_is_refused_with_upstreams_words(api: LeaseApiServer) -> None:
    refused = await call(api.url, "GET", PODS, fieldSelector="spec.image=a")
    assert (refused["code"], refused["message"]) == (
        400,
        "field label not supported: spec.image",
    )


async def test_a_watch_by_field_tells_who_comes_and_goes(api: LeaseApiServer) -> None:
    await call(api.url, "POST", PODS, pod("p"))
    watch = await Watch.open(api.url, PODS, fieldSelector="spec.nodeName=n", resourceVersion="0")
    for name in ("n", "m"):
        bound = {"spec": {"nodeName": name}}
        await call(api.url, "PATCH", f"{PODS}/p", bound, content_type=MERGE)
    events = [await watch.read(), await watch.read()]
    assert [event["type"] for event in events if event] == ["ADDED", "DELETED"]
    await watch.close()


async def test_tables(api: LeaseApiServer) -> None:
    await call(api.url, "POST", NODES, node("n", unschedulable=True))
    table = await call(api.url, "GET", NODES, accept=TABLE)
    shown = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert shown == ["Name", "Status", "Roles", "Age", "Version"]
    assert table["rows"][0]["cells"][:3] == ["n", "Ready,SchedulingDisabled", "<none>"]
    await call(api.url, "POST", PODS, pod("p", "n"))
    status = {
        "phase": "Running",
        "podIP": "10.0.0.7",
        "containerStatuses": [{"ready": True, "restartCount": 2, "state": {"running": {}}}],
    }
    await call(api.url, "PATCH", f"{PODS}/p/status", {"status": status}, content_type=MERGE)
    table = await call(api.url, "GET", PODS, accept=TABLE)
    cells = table["rows"][0]["cells"]
    assert cells[:4] + cells[5:] == [
        "p", "1/1", "Running", "2", "10.0.0.7", "n", "<none>", "<none>",
    ]  # fmt: skip


async def test_a_deleted_pod_goes_at_once(api: LeaseApiServer) -> None:
    await call(api.url, "POST", PODS, pod("p", "n"))
    assert await code(api, "DELETE", f"{PODS}/p") == 200
    assert await code(api, "GET", f"{PODS}/p") == 404


async def test_many_go_at_once(api: LeaseApiServer) -> None:
    for name in "abc":
        await call(api.url, "POST", PODS, pod(name, "n" if name != "b" else ""))
    await call(api.url, "DELETE", PODS, fieldSelector="spec.nodeName=n")
    found = await call(api.url, "GET", PODS)
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]


def binary(kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, "v1") + field(2, kind)) + field(2, raw)


async def test_a_kubelet_registers_its_node_in_protobuf(api: LeaseApiServer) -> None:
    ready = field(1, "Ready") + field(2, "True") + field(3, field(1, 1_700_000_000) + field(2, 5))
    status = (
        field(1, field(1, "cpu") + field(2, field(1, "4")))
        + field(4, ready + field(4, b"") + field(5, "KubeletReady"))
        + field(5, field(1, "InternalIP") + field(2, "10.0.0.1"))
        + field(6, field(1, field(1, 10250)))
        + field(7, field(7, "v1.36.0") + field(10, "arm64"))
        + field(8, field(1, "a:1") + field(1, "a:2") + field(2, 2**33))
        + field(13, field(1, 0))
    )
    spec = (
        field(1, "") + field(4, 1) + field(5, field(1, "k") + field(2, "") + field(3, "NoExecute"))
    )
    body = binary("Node", field(1, field(1, "n")) + field(2, spec) + field(3, status))
    accept = f"{KIND}, */*"
    made = await call(api.url, "POST", NODES, body, content_type=KIND, accept=accept)
    taint = {"key": "k", "effect": "NoExecute"}
    assert made["spec"] == {"taints": [taint], "unschedulable": True}
    condition = {
        "type": "Ready", "status": "True", "lastHeartbeatTime": "2023-11-14T22:13:20Z",
        "reason": "KubeletReady",
    }  # fmt: skip
    assert made["status"] == {
        "conditions": [condition],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "capacity": {"cpu": "4"},
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {"kubeletVersion": "v1.36.0", "architecture": "arm64"},
        "images": [{"names": ["a:1", "a:2"], "sizeBytes": 2**33}],
        "features": {"supplementalGroupsPolicy": False},
    }


async def test_a_binary_pod_is_refused_as_a_type_that_cannot_be_read(api: LeaseApiServer) -> None:
    body = binary("Pod", field(1, field(1, "p")))
    assert await code(api, "POST", PODS, body, content_type=KIND) == 415


async def test_services_are_served_and_there_are_none(api: LeaseApiServer) -> None:
    path = "/api/v1/namespaces/kube-system/services"
    found = await call(api.url, "GET", path, labelSelector="kubernetes.io/cluster-service=true")
    assert (found["kind"], found["items"]) == ("ServiceList", [])
    assert await code(api, "POST", path, {"metadata": {"name": "s"}}) == 405
