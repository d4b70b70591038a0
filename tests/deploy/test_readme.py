"""The commands of deploy/README.md install Leaseboard on Kubernetes, word for word."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboard.config import VERSION, load
from tests.clients.presence import absent
from tests.deploy.schema_api import SchemaApi, serving_schemas
from tests.deploy.schemas import VERSIONS
from tests.deploy.shipped import DEPLOY, commands_of
from tests.support.processes import LIMIT, ROOT, environment, fill
from tests.support.programs import people

# docker writes down what it was asked. `kubectl exec` runs its command here; the rest is kubectl's.
DOCKER = """#!/bin/sh
echo "$@" >>"$SAID"
if [ "$1" = build ]; then test -f "$4/Dockerfile"; fi
"""
KUBECTL = """#!/bin/sh
case "$*" in
  *" exec "*" -- "*) while [ "$1" != -- ]; do shift; done; shift; cd {root} && exec "$@" ;;
  *) exec {kubectl} "$@" ;;
esac
"""


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def install(folder: Path, api: SchemaApi, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the commands in a checkout of their own."""
    kubectl = shutil.which("kubectl") or absent("kubectl")
    programs = folder / "bin"
    programs.mkdir()
    write_program(programs / "docker", DOCKER)
    write_program(programs / "kubectl", KUBECTL.format(root=ROOT, kubectl=kubectl))
    api.write_kubeconfig(folder / "kubeconfig")
    fill(folder / "data")
    people.make(folder / "data", {"admin": people.BY_OWN_PERMISSION})
    checkout = folder / "checkout"
    shutil.copytree(DEPLOY, checkout / "deploy")
    shutil.copy(ROOT / "Dockerfile", checkout)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = environment(folder / "data") | {
        "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig"), "PATH": path,
        "SAID": str(folder / "said"), **variables,
    }  # fmt: skip
    commands = "".join(commands_of("deploy/README.md", "On Kubernetes"))
    return subprocess.run(
        ["bash", "-euo", "pipefail"], input=commands,
        cwd=checkout, env=settings, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip


def image_of(api: SchemaApi) -> Any:
    (container,) = api.kept["Deployment/leaseboard"]["spec"]["template"]["spec"]["containers"]
    return container["image"]


@pytest.mark.long
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_the_steps_install_the_image_and_the_host_that_they_name(tmp_path, version):
    image, host = "registry.internal:5000/team/leaseboard", "board.internal"
    with serving_schemas(version) as api:
        done = install(tmp_path, api, IMAGE=image, HOST=host)
    assert done.returncode == 0, done.stdout + done.stderr
    assert api.refused == []
    assert "Warning" not in done.stderr
    pushed = f"push {image}:{VERSION}"
    assert (tmp_path / "said").read_text() == f"build -t {image}:{VERSION} .\n{pushed}\n"
    assert image_of(api) == f"{image}:{VERSION}"
    config = load(api.kept["ConfigMap/leaseboard"]["data"])
    assert (config.url, config.allowed_hosts) == (f"https://{host}", (host,))
    ingress = api.kept["Ingress/leaseboard"]["spec"]
    assert (ingress["rules"][0]["host"], ingress["tls"][0]["hosts"]) == (host, [host])
    assert "NetworkPolicy/leaseboard-to-alertmanager" in api.kept
    assert "successfully rolled out" in done.stdout
    assert "/sign-in/" in done.stdout.splitlines()[-1]


def test_a_field_that_kubernetes_does_not_know_is_refused(tmp_path):
    """The API server of these tests takes no more than a real one."""
    with serving_schemas(VERSIONS[-1]) as api:
        api.write_kubeconfig(tmp_path / "kubeconfig")
        wrong = tmp_path / "wrong.yaml"
        text = (DEPLOY / "base" / "service.yaml").read_text()
        wrong.write_text(text.replace("targetPort", "tragetPort"))
        settings = os.environ | {"KUBECONFIG": str(tmp_path / "kubeconfig")}
        done = subprocess.run(
            ["kubectl", "apply", "-f", str(wrong)], env=settings,
            capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "tragetPort" in done.stderr
