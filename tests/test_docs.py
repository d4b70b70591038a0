"""docs/ names every setting, command and change that there is, and none that there is not."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from dashboard.config import PREFIX, Config
from leases.domain.changes.change import ChangeType
from leases.history.read.export import FIELDS

ROOT = Path(__file__).resolve().parent.parent
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
WORDS = (ROOT / "docs" / "words.md").read_text()


def test_every_setting_is_told():
    told = set(re.findall(rf"^\| `({PREFIX}\w+)`", OPERATIONS, re.MULTILINE))
    assert told == {PREFIX + field.name.upper() for field in fields(Config)}


def test_every_command_is_told():
    there = {path.stem for path in (ROOT / "dashboard/management/commands").glob("[a-z]*.py")}
    section = OPERATIONS.partition("## Commands")[2].partition("## Settings")[0]
    assert {line.split()[0] for line in re.findall(r"^\| `(.+?)`", section, re.MULTILINE)} == there


def test_every_change_and_its_fields_are_told():
    section = WORDS.partition("## Changes")[2]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == {c.value for c in ChangeType}
    told = re.search(r"Every change carries `([^`]+)`", section)
    assert told
    assert tuple(re.split(r",\s+", told[1])) == FIELDS
