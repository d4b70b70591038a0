"""README tells every setting and every command that there is, and none that there is not."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from dashboard.config import PREFIX, Config
from leases.domain.change import ChangeType
from leases.history.export import FIELDS

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text()


def test_every_setting_is_told():
    told = set(re.findall(rf"^\| `({PREFIX}\w+)`", TEXT, re.MULTILINE))
    assert told == {PREFIX + field.name.upper() for field in fields(Config)}


def test_every_command_is_told():
    there = {path.stem for path in (ROOT / "dashboard/management/commands").glob("[a-z]*.py")}
    section = TEXT.partition("**Commands.**")[2].partition("**Settings**")[0]
    assert {line.split()[0] for line in re.findall(r"^\| `(.+?)`", section, re.MULTILINE)} == there


def test_every_change_and_its_fields_are_told():
    section = TEXT.partition("## Changes")[2].partition("## Contracts")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == {c.value for c in ChangeType}
    told = re.search(r"Every change carries `([^`]+)`", section)
    assert told
    assert tuple(re.split(r",\s+", told[1])) == FIELDS
