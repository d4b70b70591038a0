"""The groups in discovery: those of every cluster, with resources where this server has them."""

from __future__ import annotations

import pytest

from leases.apiserver.discovery.documents import KUBE_GROUPS
from tests.apiserver.clients import Client, Process

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_every_group_of_kube_apiserver_is_named_in_its_order(client: Client) -> None:
    groups = client.call("GET", "/apis").json["groups"]
    assert [each["name"] for each in groups] == list(KUBE_GROUPS)
    scaling = next(each for each in groups if each["name"] == "autoscaling")
    assert [each["version"] for each in scaling["versions"]] == ["v2", "v1"]
    assert scaling["preferredVersion"]["version"] == "v2"


@pytest.mark.parametrize("path", ["/apis/apps/v1", "/apis/autoscaling/v1"])
def test_a_group_without_resources_lists_none_and_its_objects_are_404(
    client: Client, path: str
) -> None:
    answer = client.call("GET", path)
    assert (answer.status, answer.json["resources"]) == (200, [])
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
    assert found["apps"] == []
    assert found["coordination.k8s.io"] == ["leases"]


def test_the_server_tells_its_own_address(client: Client, process: Process) -> None:
    (address,) = client.call("GET", "/api").json["serverAddressByClientCIDRs"]
    assert process.url.endswith(f"//{address['serverAddress']}")
