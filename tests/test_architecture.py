"""The tree is the architecture: sizes and names. `lint-imports` holds the directions.

A module is a chapter: what changes together stands together. Few large chapters, little spent on
imports, and no module for the sake of one neighbour.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

from tests.conftest import LONGEST

ROOT = Path(__file__).resolve().parent.parent
MODULES = 320
MODULE_LINES = 400
MEDIAN_LINES = 85
FUNCTION_LINES = 50
IMPORTS_OF_A_LINE = 0.10
FOR_ONE_NEIGHBOUR = 30
FOLDERS = 55
STATIC_LINES = 300
TEMPLATE_COLUMNS = 200
NO_NAMES = {"utils.py", "helpers.py", "services.py", "common.py", "misc.py"}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def modules() -> Iterator[Path]:
    for room in ("leases", "dashboard"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def lines_of(node: ast.AST) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))


def measured(path: Path) -> tuple[int, int]:
    """Lines of code (with a token that is no comment, docstring or import), and of imports."""
    text = path.read_text()
    tree = ast.parse(text)
    imports = [lines_of(one) for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        lines_of(node.body[0])
        for node in ast.walk(tree)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    ]
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    imported = set().union(*imports)
    return len(code - imported - set().union(*docstrings)), len(imported)


@cache
def sizes() -> dict[Path, tuple[int, int]]:
    return {path: measured(path) for path in modules()}


def with_code() -> dict[Path, int]:
    return {path: code for path, (code, _) in sizes().items() if code}


def imported_by(path: Path) -> Iterator[Path]:
    """The modules of this house that a module names in its imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            base = ROOT / node.module.replace(".", "/")
            for name in node.names:
                for file in (base / f"{name.name}.py", base.with_suffix(".py")):
                    if file.exists():
                        yield file
                        break


def test_modules_and_functions_stay_small():
    assert [path for path, code in with_code().items() if code > MODULE_LINES] == []
    functions = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len(lines_of(node)) > FUNCTION_LINES
    ]
    assert functions == []


def test_the_house_has_few_large_rooms():
    chapters = with_code()
    assert len(chapters) <= MODULES
    assert median(chapters.values()) >= MEDIAN_LINES
    assert len({path.parent for path in chapters}) <= FOLDERS
    imports = sum(imports for _, imports in sizes().values())
    assert imports <= IMPORTS_OF_A_LINE * sum(chapters.values())


def test_few_modules_serve_one_neighbour_alone():
    importers = defaultdict(set)
    for path in modules():
        for other in imported_by(path):
            importers[other].add(path)
    alone = [
        path
        for path in with_code()
        if len(importers[path]) == 1 and next(iter(importers[path])).parent == path.parent
    ]
    assert len(alone) <= FOR_ONE_NEIGHBOUR


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


def test_a_packages_init_holds_a_docstring_only():
    for path in modules():
        if path.name == "__init__.py":
            assert [type(node) for node in ast.parse(path.read_text()).body] == [ast.Expr], path


def test_lines_of_templates_stay_short():
    for path in (ROOT / "templates").rglob("*.html"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= TEMPLATE_COLUMNS, f"{path}:{number}"


def test_style_sheets_and_scripts_stay_small_and_ask_no_other_host():
    for path in [*(ROOT / "static").rglob("*.css"), *(ROOT / "static").rglob("*.js")]:
        text = path.read_text()
        assert len(text.splitlines()) < STATIC_LINES, path
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
