"""kubectl reads back the files of many Leases that it writes: `kind: List`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.apiserver.clients import Process
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


# With what kubectl prints of each object.
COMMANDS = [
    (("apply", "--dry-run=server"), "configured (server dry run)"),
    (("apply",), "configured"),
    (("apply", "--server-side"), "serverside-applied"),
    (("apply", "--server-side", "--force-conflicts"), "serverside-applied"),
    (("replace",), "replaced"),
    (("replace", "--force"), "replaced"),
]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        COMMANDS[1],
        pytest.param(*COMMANDS[0], marks=pytest.mark.long),
        *(pytest.param(*one, marks=pytest.mark.long) for one in COMMANDS[2:]),
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


@pytest.mark.long
def test_the_leases_of_all_namespaces_go_back_in(tmp_path: Path) -> None:
    with Process(tmp_path / "data") as process:
        kubectl = Kubectl(process.data / "kubeconfig")
        kubectl.run("create", "namespace", "other")
        for namespace in ("default", "other"):
            kubectl.run("create", "-n", namespace, "-f", "-", stdin=LEASES)
        for command, printed in COMMANDS:
            file = kubectl.run("get", "leases", "-A", "-o", "yaml")
            out = kubectl.run(*command, "-f", "-", stdin=file)
            assert out.count(f" {printed}\n") == 4, out


def test_a_list_with_a_wrong_field_is_refused_by_name(kubectl: Kubectl) -> None:
    wrong = saved(kubectl).replace("leaseDurationSeconds", "leaseDuration")
    out = kubectl.run("apply", "-f", "-", stdin=wrong, check=False)
    assert 'ValidationError(Lease.spec): unknown field "leaseDuration"' in out
