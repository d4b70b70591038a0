"""kubectl, with the kubeconfig as written, can do what it does with a real API server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.clients import Process
from tests.processes import wait_for

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine"),
]
MANIFEST = """
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: demo, labels: {app: x}}
spec: {holderIdentity: me, leaseDurationSeconds: 15, renewTime: "2024-05-01T10:00:00.000000Z"}
"""


class Kubectl:
    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.command = ["kubectl", "--kubeconfig", str(kubeconfig)]
        self.environment = {**os.environ, "HOME": str(home)}
        self.environment.pop("KUBECONFIG", None)
        self.home = home

    def run(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        done = subprocess.run(
            [*self.command, *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    data = tmp_path_factory.mktemp("kubectl") / "data"
    with Process(data):
        yield Kubectl(data / "kubeconfig", data.parent)


@pytest.fixture
def demo(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl.run("apply", "-f", "-", stdin=MANIFEST)
    yield kubectl
    kubectl.run("delete", "lease", "demo", "--ignore-not-found")


def test_get_shows_the_table(demo: Kubectl) -> None:
    header, row = demo.run("get", "leases", "-A").splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "HOLDER", "AGE"]
    assert row.split()[:3] == ["default", "demo", "me"]


def test_get_as_yaml_and_describe(demo: Kubectl) -> None:
    assert "holderIdentity: me" in demo.run("get", "lease", "demo", "-o", "yaml")
    assert "Holder Identity:" in demo.run("describe", "lease", "demo")


def test_a_changed_manifest_is_applied(demo: Kubectl) -> None:
    changed = MANIFEST.replace("app: x", "app: z").replace(", leaseDurationSeconds: 15", "")
    assert "configured" in demo.run("apply", "-f", "-", stdin=changed)
    found = json.loads(demo.run("get", "lease", "demo", "-o", "json"))
    assert found["metadata"]["labels"] == {"app": "z"}
    assert "leaseDurationSeconds" not in found["spec"]
    assert "unchanged" in demo.run("apply", "-f", "-", stdin=changed)


def test_server_side_apply_takes_over_from_client_side_apply(demo: Kubectl) -> None:
    changed = MANIFEST.replace("holderIdentity: me", "holderIdentity: you")
    done = demo.run("apply", "--server-side", "-f", "-", stdin=changed)
    assert "serverside-applied" in done
    managers = demo.run(
        "get", "lease", "demo", "-o", "jsonpath={.metadata.managedFields[*].manager}"
    )
    assert "kubectl" in managers.split()


def test_patch_label_and_replace(demo: Kubectl) -> None:
    demo.run("patch", "lease", "demo", "--type", "merge", "-p", '{"spec":{"holderIdentity":"you"}}')
    demo.run("label", "lease", "demo", "tier=one")
    demo.run("annotate", "lease", "demo", "note=<b>")
    found = json.loads(demo.run("get", "lease", "demo", "-o", "json"))
    assert found["spec"]["holderIdentity"] == "you"
    assert found["metadata"]["labels"]["tier"] == "one"
    demo.run("replace", "-f", "-", stdin=json.dumps(found))


def test_an_unknown_field_is_refused_by_name(kubectl: Kubectl) -> None:
    wrong = MANIFEST.replace("holderIdentity", "holderIdentitee")
    told = kubectl.run("create", "-f", "-", stdin=wrong, check=False)
    assert 'unknown field "spec.holderIdentitee"' in told


def test_watch_tells_what_happens(demo: Kubectl) -> None:
    log = demo.home / "watch.log"
    with log.open("wb") as out:
        watching = subprocess.Popen(
            [*demo.command, "get", "leases", "-A", "--watch"], env=demo.environment, stdout=out
        )
    try:
        wait_for(lambda: "me" in log.read_text(), what="the first row")
        change = '{"spec":{"holderIdentity":"later"}}'
        demo.run("patch", "lease", "demo", "--type", "merge", "-p", change)
        wait_for(lambda: "later" in log.read_text(), what="the changed row")
    finally:
        watching.kill()
        watching.wait()


def test_can_i_and_namespaces(kubectl: Kubectl) -> None:
    assert kubectl.run("auth", "can-i", "create", "leases").strip() == "yes"
    extra = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}
    kubectl.run("create", "-f", "-", stdin=json.dumps(extra))
    assert "Active" in kubectl.run("get", "namespace", "extra")
    kubectl.run("delete", "namespace", "extra", "--timeout=30s")
    assert "not found" in kubectl.run("get", "namespace", "extra", check=False)


def test_explain_knows_the_fields(kubectl: Kubectl) -> None:
    assert "leaseTransitions" in kubectl.run("explain", "lease.spec")
