"""kubectl with the kubeconfig as written: what takes two clients, or tokens of other roles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.apiserver.clients import Process
from tests.clients.kubectl.runner import Kubectl
from tests.clients.somebody import Somebody
from tests.support.processes import manage, wait_for

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine"),
]
MANIFEST = """
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: demo, labels: {app: x}}
spec: {holderIdentity: me, leaseDurationSeconds: 15, renewTime: "2024-05-01T10:00:00.000001Z"}
"""


@pytest.fixture
def kubectl(secure: Path, namespace: str) -> Kubectl:
    return Kubectl(secure, namespace)


@pytest.fixture
def demo(kubectl: Kubectl) -> Kubectl:
    kubectl.run("apply", "-f", "-", stdin=MANIFEST)
    return kubectl


def test_server_side_apply_takes_over_from_client_side_apply(demo: Kubectl) -> None:
    changed = MANIFEST.replace("holderIdentity: me", "holderIdentity: you")
    done = demo.run("apply", "--server-side", "-f", "-", stdin=changed)
    assert "serverside-applied" in done
    assert "kubectl" in demo.read(".metadata.managedFields[*].manager").split()
    other = ("apply", "--server-side", "--field-manager", "other", "-f", "-")
    taken = MANIFEST.replace("holderIdentity: me", "holderIdentity: them")
    printed = demo.run(*other, stdin=taken, check=False)
    assert 'conflict with "kubectl"' in printed
    assert ".spec.holderIdentity" in printed
    demo.run(*other, "--force-conflicts", stdin=taken)
    assert demo.read(".spec.holderIdentity") == "them"


def test_watch_prints_what_happens(demo: Kubectl, somebody: Somebody, tmp_path: Path) -> None:
    log = tmp_path / "watch.log"
    with log.open("wb") as out:
        watching = subprocess.Popen(
            [*demo.command, "get", "leases", "--watch"], env=demo.environment, stdout=out
        )
    try:
        wait_for(lambda: "me" in log.read_text(), what="the first row")
        somebody.hand_over("demo", "later")
        wait_for(lambda: "later" in log.read_text(), what="the changed row")
    finally:
        watching.kill()
        watching.wait()


def test_wait_ends_when_the_lease_says_so(demo: Kubectl, somebody: Somebody) -> None:
    waiting = subprocess.Popen(
        [*demo.command, "wait", "lease/demo", "--for=jsonpath={.spec.holderIdentity}=later"],
        env=demo.environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        somebody.hand_over("demo", "later")
        assert waiting.wait(timeout=60) == 0
    finally:
        waiting.kill()
        waiting.wait()


def test_can_i_answers_what_a_token_may_do(kubectl: Kubectl, lease_api: Process) -> None:
    assert kubectl.run("auth", "can-i", "create", "leases").strip() == "yes"
    arguments = ("create", "--name", "reader", "--role", "read", "--token", "reader-token")
    manage(lease_api.data, "lease_tokens", *arguments)
    reader = ("--token", "reader-token")
    assert kubectl.run(*reader, "auth", "can-i", "watch", "leases").strip() == "yes"
    printed = kubectl.run(*reader, "auth", "can-i", "delete", "leases", check=False)
    assert printed.strip() == "no"
    printed = kubectl.run(*reader, "delete", "lease", "demo", check=False)
    assert 'User "reader" cannot delete resource "leases"' in printed
    printed = kubectl.run("--token", "unknown-token", "get", "leases", check=False)
    assert "must be logged in" in printed


def test_as_another_user(kubectl: Kubectl, lease_api: Process) -> None:
    manage(lease_api.data, "lease_tokens", "create", "--name", "lookout", "--role", "read")
    lookout, masters = ("--as", "lookout"), ("--as", "someone", "--as-group", "system:masters")
    kubectl.run(*lookout, "get", "leases")
    assert kubectl.run(*lookout, "auth", "can-i", "list", "leases").strip() == "yes"
    assert kubectl.run(*lookout, "auth", "can-i", "create", "leases", check=False).strip() == "no"
    assert kubectl.run(*masters, "auth", "can-i", "create", "leases").strip() == "yes"
    printed = kubectl.run("--as", "someone", "get", "leases", check=False)
    assert 'User "someone" cannot list resource "leases"' in printed
    printed = kubectl.run(*lookout, "--as-uid", "u-1", "auth", "whoami")
    assert "lookout" in printed
    assert "u-1" in printed
    assert "nonResourceAttributes" in kubectl.run("explain", "subjectaccessreviews.spec")
    rules = kubectl.run(*lookout, "auth", "can-i", "--list")
    assert "[get list watch]" in rules
