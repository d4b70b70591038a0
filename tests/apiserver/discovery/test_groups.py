"""The groups in discovery: those of every cluster, with verbs where this server has resources."""

from __future__ import annotations

import pytest

from leases.apiserver.discovery.documents import KUBE_GROUPS
from tests.apiserver.clients import Client, Process
from tests.clients.kubectl.runner import Kubectl

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_every_group_of_kube_apiserver_is_named_in_its_order(client: Client) -> None:
    groups = client.call("GET", "/apis").json["groups"]
    assert [each["name"] for each in groups] == list(KUBE_GROUPS)
    scaling = next(each for each in groups if each["name"] == "autoscaling")
    assert [each["version"] for each in scaling["versions"]] == ["v2", "v1"]
    assert scaling["preferredVersion"]["version"] == "v2"


@pytest.mark.parametrize("path", ["/apis/apps/v1", "/apis/autoscaling/v1"])
def test_what_is_not_served_is_named_without_verbs_and_its_objects_are_404(
    client: Client, path: str
) -> None:
    """kubectl caches no group whose list is empty: it would ask for it at each command."""
    answer = client.call("GET", path)
    assert answer.status == 200
    assert {tuple(each["verbs"]) for each in answer.json["resources"]} == {()}
    missing = client.call("GET", f"{path}/namespaces/default/deployments")
    assert missing.status == 404
    assert missing.json["message"] == "the server could not find the requested resource"


def test_aggregated_discovery_names_the_same_groups(client: Client) -> None:
    items = client.call("GET", "/apis", accept=AGGREGATED).json["items"]
    found = {
        each["metadata"]["name"]: [
            resource["resource"]
            for version in each["versions"]
            for resource in version["resources"]
        ]
        for each in items
    }
    assert list(found) == list(KUBE_GROUPS)
    assert all(found.values())
    assert found["coordination.k8s.io"] == ["leases"]


@pytest.mark.parametrize("path", ["/livez/etcd", "/readyz/etcd", "/healthz/ping", "/livez/log"])
def test_each_check_of_health_has_its_path(client: Client, path: str) -> None:
    assert client.call("GET", path).status == 200


def test_kubectl_asks_for_discovery_once(process: Process) -> None:
    kubectl = Kubectl(process.data / "kubeconfig")
    requests = [kubectl.run("get", "leases", "-v=6").count("GET http") for _ in range(2)]
    assert requests == [3, 1]
    refused = kubectl.run("get", "leases", "--token", "no such token", check=False)
    assert refused.strip() == "error: You must be logged in to the server (Unauthorized)"


def test_the_server_tells_its_own_address(client: Client, process: Process) -> None:
    (address,) = client.call("GET", "/api").json["serverAddressByClientCIDRs"]
    assert process.url.endswith(f"//{address['serverAddress']}")
