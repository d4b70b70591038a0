"""kubectl reads back the files of many Leases that it writes: `kind: List`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.clients.kubectl.runner import Kubectl

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine"),
]
LEASES = """
apiVersion: v1
kind: List
items:
- apiVersion: coordination.k8s.io/v1
  kind: Lease
  metadata: {name: one, labels: {app: x}}
  spec: {holderIdentity: me, leaseDurationSeconds: 15}
- apiVersion: coordination.k8s.io/v1
  kind: Lease
  metadata: {name: two}
  spec: {holderIdentity: "", renewTime: "2024-05-01T10:00:00.000001Z"}
"""


@pytest.fixture
def kubectl(secure: Path, namespace: str) -> Kubectl:
    made = Kubectl(secure, namespace)
    made.run("create", "-f", "-", stdin=LEASES)
    return made


def saved(kubectl: Kubectl) -> str:
    """`kubectl get leases -o yaml`."""
    text = kubectl.run("get", "leases", "-o", "yaml")
    assert yaml.safe_load(text)["kind"] == "List"
    return text


def specs(kubectl: Kubectl) -> dict[str, object]:
    items = json.loads(kubectl.run("get", "leases", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["spec"] for item in items}


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        (("apply",), "configured"),
        (("apply", "--server-side"), "serverside-applied"),
        (("apply", "--server-side", "--force-conflicts"), "serverside-applied"),
        (("replace",), "replaced"),
        (("replace", "--force"), "replaced"),
        (("apply", "--dry-run=server"), "configured (server dry run)"),
    ],
)
def test_a_saved_list_goes_back_in(
    kubectl: Kubectl, command: tuple[str, ...], printed: str
) -> None:
    before, file = specs(kubectl), saved(kubectl)
    out = kubectl.run(*command, "-f", "-", stdin=file)
    for name in ("one", "two"):
        assert f"lease.coordination.k8s.io/{name} {printed}" in out
    assert specs(kubectl) == before


def test_a_saved_list_makes_the_leases_anew(kubectl: Kubectl) -> None:
    before, document = specs(kubectl), yaml.safe_load(saved(kubectl))
    kubectl.run("delete", "leases", "--all")
    for item in document["items"]:
        del item["metadata"]["resourceVersion"]
    out = kubectl.run("create", "-f", "-", stdin=yaml.safe_dump(document))
    assert out.count("created") == 2
    assert specs(kubectl) == before


def test_a_list_with_a_wrong_field_is_refused_by_name(kubectl: Kubectl) -> None:
    wrong = saved(kubectl).replace("leaseDurationSeconds", "leaseDuration")
    out = kubectl.run("apply", "-f", "-", stdin=wrong, check=False)
    assert 'ValidationError(Lease.spec): unknown field "leaseDuration"' in out
