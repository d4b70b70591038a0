"""The tree is the architecture: sizes and names. `lint-imports` holds the directions."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LONGEST

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES = 300
TEMPLATE_COLUMNS = 200
FUNCTION_LINES = 40
NO_NAMES = {"utils.py", "helpers.py", "services.py", "common.py", "misc.py"}


def modules() -> Iterator[Path]:
    for room in ("leases", "dashboard"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_small(path):
    text = path.read_text()
    assert len(text.splitlines()) < MODULE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < FUNCTION_LINES, node.name


def test_no_file_is_named_for_everything():
    assert not [path for path in modules() if path.name in NO_NAMES]


def test_no_two_public_classes_share_a_name():
    found = Counter(
        node.name
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    del found["Command"]  # Django's name of each
    assert [name for name, number in found.items() if number > 1] == []


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if path.name == "__init__.py"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_packages_init_holds_a_docstring_only(path):
    body = ast.parse(path.read_text()).body
    assert [type(node) for node in body] == [ast.Expr], path


def test_lines_of_templates_stay_short():
    for path in (ROOT / "templates").rglob("*.html"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= TEMPLATE_COLUMNS, f"{path}:{number}"


def test_style_sheets_and_scripts_stay_small_and_ask_no_other_host():
    for path in [*(ROOT / "static").rglob("*.css"), *(ROOT / "static").rglob("*.js")]:
        text = path.read_text()
        assert len(text.splitlines()) < MODULE_LINES, path
        assert "http://" not in text.replace("http://www.w3.org/", ""), path
        assert "https://" not in text, path


def test_no_test_or_benchmark_imports_a_test():
    importing = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"^from tests\.[\w.]*\btest_\w+ import", path.read_text(), re.MULTILINE)
    ]
    assert importing == []


def test_every_benchmark_has_the_shared_main():
    shared_with_other_projects = {"leasestorm.py", "renewals.py"}
    for path in (ROOT / "tests" / "benchmarks").glob("*.py"):
        if path.name not in {"__init__.py", *shared_with_other_projects}:
            assert "main(__doc__, measure" in path.read_text(), path


def test_every_place_in_the_order_of_the_tests_exists():
    assert [name for name in LONGEST if not (ROOT / name).exists()] == []
