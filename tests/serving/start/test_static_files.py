"""Scripts and styles: small modules, every import in the import map, no colour outside the tokens'
hands.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
MODULES = sorted((ROOT / "static/js").glob("*.js"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_stays_under_a_hundred_lines(module):
    assert len(module.read_text().splitlines()) < 100


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_every_import_has_its_name_in_the_import_map(module):
    imported = set(re.findall(r'(?:from|import) "([^"]+)"', module.read_text()))
    named = re.findall(r'"(leaseboard/\w+)":', (ROOT / "templates/_scripts.html").read_text())
    assert imported <= set(named)


def test_every_name_in_the_import_map_is_a_module():
    text = (ROOT / "templates/_scripts.html").read_text()
    files = re.findall(r"\"leaseboard/(\w+)\": \"{% static 'js/(\w+)\.js' %}\"", text)
    assert files
    assert all(name == file and (ROOT / f"static/js/{file}.js").exists() for name, file in files)


def test_every_style_sheet_is_used_and_exists():
    linked = set()
    for template in TEMPLATES:
        linked |= set(re.findall(r"'css/(\w+)\.css'", template.read_text()))
    assert linked == {path.stem for path in (ROOT / "static/css").glob("*.css")}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_partial_says_first_what_it_needs(template):
    if template.name.startswith("_"):
        assert template.read_text().startswith("{# ")
