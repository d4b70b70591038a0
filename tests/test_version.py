"""One version: of the code, of its package, of the changelog, on a page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dashboard.config import VERSION
from leases.kube.http_session import USER_AGENT

ROOT = Path(__file__).resolve().parent.parent


def test_the_chart_and_the_image_have_the_version_of_the_code():
    chart = (ROOT / "deploy/helm/Chart.yaml").read_text()
    assert re.findall(r"^(?:app)?[vV]ersion: \"?([\d.]+)", chart, re.MULTILINE) == [VERSION] * 2
    assert f"org.opencontainers.image.version={VERSION}\n" in (ROOT / "Dockerfile").read_text()


def test_package_changelog_and_user_agent_name_the_version_of_the_code():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project["version"] == headings[0] == VERSION
    assert f"{USER_AGENT}." in f"leaseboard/{VERSION}"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/c/a/", "/c/a/leases/", "/audit/"])
def test_pages_name_the_version(board, admin, path):
    assert f"Leaseboard {VERSION}</p>" in admin.get(path).content.decode()
