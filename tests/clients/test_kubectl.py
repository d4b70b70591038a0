"""kubectl, with the kubeconfig as written, can do what it does with a real API server."""

from __future__ import annotations

import json
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


def test_get_shows_the_table(demo: Kubectl) -> None:
    header, row = demo.run("get", "leases").splitlines()
    assert header.split() == ["NAME", "HOLDER", "AGE"]
    assert row.split()[:2] == ["demo", "me"]
    everywhere = demo.run("get", "leases", "-A", "-l", "app=x", "--show-labels").splitlines()
    assert everywhere[0].split() == ["NAMESPACE", "NAME", "HOLDER", "AGE", "LABELS"]


def test_get_in_other_forms(demo: Kubectl) -> None:
    assert 'renewTime: "2024-05-01T10:00:00.000001Z"' in demo.run(
        "get", "lease", "demo", "-o", "yaml"
    )
    assert demo.run("get", "leases", "-o", "name") == "lease.coordination.k8s.io/demo\n"
    columns = "custom-columns=WHO:.spec.holderIdentity"
    assert demo.run("get", "leases", "-o", columns).split() == ["WHO", "me"]
    missing = demo.run("get", "lease", "none", check=False)
    assert 'leases.coordination.k8s.io "none" not found' in missing


def test_describe_shows_every_field(demo: Kubectl) -> None:
    printed = demo.run("describe", "lease", "demo")
    for field in ("Holder Identity:", "Lease Duration Seconds:", "Renew Time:", "app=x"):
        assert field in printed


def test_create_refuses_what_is_there_and_what_is_unknown(demo: Kubectl) -> None:
    assert "already exists" in demo.run("create", "-f", "-", stdin=MANIFEST, check=False)
    wrong = MANIFEST.replace("holderIdentity", "holderIdentitee")
    printed = demo.run("create", "-f", "-", stdin=wrong, check=False)
    assert 'unknown field "spec.holderIdentitee"' in printed
    bad = MANIFEST.replace("demo", "other").replace("15", "0")
    printed = demo.run("create", "-f", "-", stdin=bad, check=False)
    assert "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0" in printed


def test_a_changed_manifest_is_applied(demo: Kubectl) -> None:
    changed = MANIFEST.replace("app: x", "app: z").replace(", leaseDurationSeconds: 15", "")
    assert "+  " in demo.run("diff", "-f", "-", stdin=changed, check=False)
    assert "configured" in demo.run("apply", "-f", "-", stdin=changed)
    found = json.loads(demo.run("get", "lease", "demo", "-o", "json"))
    assert found["metadata"]["labels"] == {"app": "z"}
    assert "leaseDurationSeconds" not in found["spec"]
    assert "unchanged" in demo.run("apply", "-f", "-", stdin=changed)


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


def test_edit_with_a_scripted_editor(demo: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/holderIdentity: me/holderIdentity: edited/' \"$1\"\n")
    editor.chmod(0o700)
    assert "edited" in demo.run("edit", "lease", "demo", KUBE_EDITOR=str(editor))
    assert demo.read(".spec.holderIdentity") == "edited"
    assert "no changes made" in demo.run("edit", "lease", "demo", KUBE_EDITOR="true")


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("json", '[{"op": "replace", "path": "/spec/holderIdentity", "value": "you"}]'),
        ("merge", '{"spec": {"holderIdentity": "you"}}'),
        ("strategic", '{"spec": {"holderIdentity": "you"}}'),
    ],
)
def test_a_patch_of_each_kind(demo: Kubectl, kind: str, patch: str) -> None:
    assert "patched" in demo.run("patch", "lease", "demo", "--type", kind, "-p", patch)
    assert "no change" in demo.run("patch", "lease", "demo", "--type", kind, "-p", patch)
    assert demo.read(".spec.holderIdentity") == "you"


def test_label_annotate_and_replace(demo: Kubectl) -> None:
    demo.run("label", "lease", "demo", "tier=one")
    printed = demo.run("label", "lease", "demo", "tier=two", check=False)
    assert "already has a value" in printed
    demo.run("label", "lease", "demo", "tier=two", "--overwrite")
    demo.run("annotate", "lease", "demo", "note=<b>")
    found = json.loads(demo.run("get", "lease", "demo", "-o", "json"))
    assert found["metadata"]["labels"]["tier"] == "two"
    assert found["metadata"]["annotations"]["note"] == "<b>"
    demo.run("replace", "-f", "-", stdin=json.dumps(found))
    demo.run("label", "lease", "demo", "tier-")
    assert demo.read(".metadata.labels") == '{"app":"x"}'


def test_delete_by_name_and_by_label(demo: Kubectl) -> None:
    for name in ("a", "b"):
        demo.run("create", "-f", "-", stdin=MANIFEST.replace("demo", name))
    assert demo.run("delete", "lease", "a").split()[-1] == "deleted"
    demo.run("label", "lease", "demo", "app=y", "--overwrite")
    assert '"b" deleted' in demo.run("delete", "leases", "-l", "app=x")
    assert demo.run("get", "leases", "-o", "name").split() == ["lease.coordination.k8s.io/demo"]
    assert "deleted" in demo.run("delete", "leases", "--all")
    assert "No resources found" in demo.run("get", "leases")


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
        assert waiting.wait(timeout=30) == 0
    finally:
        waiting.kill()
        waiting.wait()


def test_namespaces_come_and_go(kubectl: Kubectl) -> None:
    kubectl.run("create", "namespace", "extra")
    assert "Active" in kubectl.run("get", "namespace", "extra")
    kubectl.run("delete", "namespace", "extra", "--timeout=30s")
    assert "not found" in kubectl.run("get", "namespace", "extra", check=False)


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
    rules = kubectl.run(*lookout, "auth", "can-i", "--list")
    assert "[get list watch]" in rules


def test_explain_knows_the_fields(kubectl: Kubectl) -> None:
    printed = kubectl.run("explain", "lease.spec")
    for field in ("holderIdentity", "leaseTransitions", "preferredHolder"):
        assert field in printed
    printed = " ".join(kubectl.run("explain", "lease.spec.renewTime").split())
    assert "FIELD: renewTime <string>" in printed
    assert "renewTime is a time when the current holder of a lease has last updated" in printed
    assert "DESCRIPTION: Lease defines a lease concept." in " ".join(
        kubectl.run("explain", "lease").split()
    )
    assert "does not exist" in kubectl.run("explain", "lease.spec.none", check=False)


def test_api_resources_and_version(kubectl: Kubectl) -> None:
    printed = kubectl.run("api-resources", "--api-group=coordination.k8s.io", "--no-headers")
    assert printed.split() == ["leases", "coordination.k8s.io/v1", "true", "Lease"]
    assert "leaseboard" in kubectl.run("version", "-o", "json")
