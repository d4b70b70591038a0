"""Scripts and styles: small modules, every import in the import map, no colour outside the tokens'
hands.
"""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
MODULES = sorted((ROOT / "static/js").glob("*.js"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def test_every_module_stays_under_a_hundred_lines():
    assert [one for one in MODULES if len(one.read_text().splitlines()) >= 100] == []


def test_every_import_has_its_name_in_the_import_map():
    named = re.findall(r'"(leaseboard/\w+)":', (ROOT / "templates/_imports.html").read_text())
    imports = re.compile(r'(?:from|import) "([^"]+)"')
    unnamed = {one.name: set(imports.findall(one.read_text())) - set(named) for one in MODULES}
    assert {name: left for name, left in unnamed.items() if left} == {}


def test_every_name_in_the_import_map_is_a_module():
    text = (ROOT / "templates/_imports.html").read_text()
    files = re.findall(r"\"leaseboard/(\w+)\": \"{% static 'js/(\w+)\.js' %}\"", text)
    assert files
    assert all(name == file and (ROOT / f"static/js/{file}.js").exists() for name, file in files)


def test_every_style_sheet_is_used_and_exists():
    linked = set()
    for template in TEMPLATES:
        linked |= set(re.findall(r"'css/(\w+)\.css'", template.read_text()))
    assert linked == {path.stem for path in (ROOT / "static/css").glob("*.css")}


def test_every_partial_says_first_what_it_needs():
    partials = [one for one in TEMPLATES if one.name.startswith("_")]
    assert partials
    assert [one for one in partials if not one.read_text().startswith("{# ")] == []
