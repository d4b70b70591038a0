"""The workflows of `.github/` are what GitHub takes, and check with `.ci/run` and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml

from dashboard.config import VERSION
from tests.support.processes import ROOT

FOLDER = ROOT / ".github" / "workflows"
NAMES = sorted(path.name for path in FOLDER.iterdir())


def workflow(name: str) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text())
    return loaded


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_is_what_its_schema_allows(name):
    check = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run(
        [sys.executable, *check, str(FOLDER / name)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_checks_are_those_of_ci_run_for_each_python_that_is_supported():
    (job,) = workflow("tests.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    versions = job["strategy"]["matrix"]["python"]
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert required == f">={versions[0]}"
    assert f"Python {versions[0]} to {versions[-1]} " in (ROOT / "README.md").read_text()


def test_nothing_is_released_that_the_checks_refuse():
    jobs = workflow("release.yml")["jobs"]
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert {"tests", "version"} <= {*jobs["image"]["needs"]}
    assert "image" in jobs["release"]["needs"]


def test_the_image_is_made_of_a_base_by_digest_for_both_machines_with_annotations():
    """The loop of the workflow, run with a docker that prints what it was told."""
    look, build = workflow("image.yml")["jobs"]["build"]["steps"][-2:]
    assert {*build["env"].values()} == {
        "${{ steps.base.outputs.name }}", "${{ steps.base.outputs.digest }}",
    }  # fmt: skip
    assert look["id"] == "base"
    known = {"BASE": "python:3", "DIGEST": "sha256:0", "VERSION": "1.2.3", "IMAGE": "ghcr.io/A/B"}
    given = {"GITHUB_SERVER_URL": "https://x", "GITHUB_REPOSITORY": "A/B", "GITHUB_SHA": "c"}
    stub = 'docker() { printf "%s\\n" "$@"; }\n'
    done = subprocess.run(
        ["bash", "-euc", stub + build["run"]], env=known | given | {"PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    told = done.stdout.splitlines()
    assert {"linux/amd64,linux/arm64", "PYTHON=python:3@sha256:0", "ghcr.io/a/b:1.2.3"} <= {*told}
    for one in ("version=1.2.3", "base.digest=sha256:0", "revision=c"):
        assert f"org.opencontainers.image.{one}" in told
        assert f"index,manifest:org.opencontainers.image.{one}" in told


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_may_write_only_what_a_job_of_it_says(name):
    assert workflow(name)["permissions"] == {"contents": "read"}


def test_the_notes_of_a_release_are_those_of_its_version():
    """The program of the workflow, run on CHANGELOG.md."""
    step = workflow("release.yml")["jobs"]["release"]["steps"][-1]["run"]
    (program,) = re.findall(r"awk .*(?= >notes\.md)", step)
    done = subprocess.run(
        ["bash", "-c", program], cwd=ROOT, env={"VERSION": VERSION, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip().startswith("The first version.")
    assert "### Operations" in done.stdout
