"""What tests read of `deploy/` and of the Dockerfile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.support.processes import ROOT

DEPLOY = ROOT / "deploy"
Manifest = dict[str, Any]


@cache
def rendered(overlay: str) -> dict[str, Manifest]:
    """The manifests of an overlay, perhaps `with edit` or another component, by `Kind/name`."""
    if shutil.which("kubectl") is None:
        assert os.environ.get("CI") != "true", "kubectl is not installed"
        pytest.skip("kubectl is not installed")
    name, _, component = overlay.partition(" with ")
    added = [DEPLOY / "components" / component] if component else []
    with TemporaryDirectory() as folder:
        own = {
            "resources": [os.path.relpath(DEPLOY / "overlays" / name, folder)],
            "components": [os.path.relpath(one, folder) for one in added],
        }
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(own))
        done = subprocess.run(
            ["kubectl", "kustomize", folder],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return {f"{one['kind']}/{one['metadata']['name']}": one
            for one in yaml.safe_load_all(done.stdout)}  # fmt: skip


def pod_of(overlay: str) -> Manifest:
    pod: Manifest = rendered(overlay)["Deployment/leaseboard"]["spec"]["template"]["spec"]
    return pod


def steps() -> list[list[tuple[str, str]]]:
    """The instructions of the Dockerfile by stage."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines()
             if line and not line.startswith("#")]  # fmt: skip
    stages: list[list[tuple[str, str]]] = [[]]
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages[1:]


def commands_of(page: str, heading: str) -> list[str]:
    """Each block of shell commands below a heading of a page."""
    text = (ROOT / page).read_text()
    section = re.search(rf"^## {heading}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    found = re.findall(r"^( *)```sh\n(.*?)^\1```$", section[1], re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in found]
