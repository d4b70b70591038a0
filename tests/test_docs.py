"""docs/ names every setting, command, metric and change, and only files and names that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from django.db.backends.postgresql.features import DatabaseFeatures

from dashboard.config import PREFIX, Config
from leases.domain.change import ChangeType
from leases.history.export import FIELDS
from tests.deploy.schemas import VERSIONS

ROOT = Path(__file__).resolve().parent.parent
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
WORDS = (ROOT / "docs" / "words.md").read_text()
PAPERS = [*ROOT.glob("*.md"), ROOT / "leases/apiserver/README.md", *(ROOT / "docs").glob("*.md")]
ROOMS = "leases|dashboard|tests|docs|deploy|templates|static"
MADE_AT_RUN_TIME = {"static/"}


def test_every_setting_is_documented():
    named = set(re.findall(rf"^\| `({PREFIX}\w+)`", OPERATIONS, re.MULTILINE))
    assert named == {PREFIX + field.name.upper() for field in fields(Config)}


def test_the_supported_versions_are_those_that_are_tested_or_refused():
    text = (ROOT / "README.md").read_text()
    said = dict(
        re.findall(r"^\| (Python|Kubernetes|PostgreSQL) \| ([^|;]+?) *[|;]", text, re.MULTILINE)
    )
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    pythons = workflow["jobs"]["checks"]["strategy"]["matrix"]["python"]
    (oldest,) = DatabaseFeatures.minimum_database_version  # Django refuses an older one
    assert said == {
        "Python": f"{pythons[0]} to {pythons[-1]}",
        "Kubernetes": f"{VERSIONS[0]} to {VERSIONS[-1]}",
        "PostgreSQL": f"{oldest} or newer",
    }


def test_every_command_is_documented():
    there = {path.stem for path in (ROOT / "dashboard/management/commands").glob("[a-z]*.py")}
    section = OPERATIONS.partition("## Commands")[2].partition("## Settings")[0]
    assert {line.split()[0] for line in re.findall(r"^\| `(.+?)`", section, re.MULTILINE)} == there


def test_every_change_and_its_fields_are_documented():
    section = WORDS.partition("## Changes")[2]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == {c.value for c in ChangeType}
    named = re.search(r"Every change carries `([^`]+)`", section)
    assert named
    assert tuple(re.split(r",\s+", named[1])) == FIELDS


def _named_paths(text: str) -> Iterator[str]:
    """Paths in the text that begin with a room's name; a <placeholder> ends the path."""
    yield from re.findall(rf"(?<![\w/.-])(?:{ROOMS})/[\w./-]*\w(?:/(?!<))?", text)
    for module in re.findall(r"python3 -m ((?:tests|leases|dashboard)[\w.]+)", text):
        yield f"{module.replace('.', '/')}.py"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_paper_names_exists(paper):
    text = paper.read_text()
    links = re.findall(r'(?:\]\(|src(?:set)?=")(?!http)([^)"#]+)', text)
    missing = [link for link in links if not (paper.parent / link).exists()]
    missing += [path for path in _named_paths(text) if not (ROOT / path).exists()]
    assert not set(missing) - MADE_AT_RUN_TIME


def test_every_module_that_the_paper_of_a_room_names_exists():
    room = ROOT / "leases/apiserver"
    text = (room / "README.md").read_text()
    named = re.findall(r"`((?:[a-z_]+/)?[a-z_]+(?:\.py|/))`", text)
    assert len(named) > 10
    assert [one for one in named if not ((room / one).exists() or (ROOT / one).exists())] == []


def test_every_file_that_a_docstring_or_comment_names_exists():
    missing = {}
    for room in ("leases", "dashboard", "templates", "static"):
        for path in (ROOT / room).rglob("*.*"):
            if path.suffix not in {".py", ".html", ".js", ".css"}:
                continue
            named = re.findall(
                rf"(?<![\w/.-])(?:{ROOMS})/[\w./-]+\.(?:py|md|html)\b", path.read_text()
            )
            gone = [
                name
                for name in named
                if not ((ROOT / name).exists() or (ROOT / "templates" / name).exists())
            ]
            if gone:
                missing[str(path.relative_to(ROOT))] = gone
    assert missing == {}
