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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Measured:
    """What the tests ask of a module: each is parsed once, which takes most of their time."""

    code: int  # lines with a token that is no comment, docstring or import
    imports: int  # lines
    named: frozenset[Path]  # the modules of this house that it names in its imports
    functions: dict[str, int]  # lines by name; of two of one name, the longest
    classes: tuple[str, ...]
    statements: tuple[type[ast.AST], ...]


def measured(path: Path) -> Measured:
    text = path.read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    imports = [lines_of(one) for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        lines_of(node.body[0])
        for node in nodes
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    ]
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    imported = set().union(*imports)
    functions: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[node.name] = max(functions.get(node.name, 0), len(lines_of(node)))
    return Measured(
        code=len(code - imported - set().union(*docstrings)),
        imports=len(imported),
        named=frozenset(imported_by(nodes)),
        functions=functions,
        classes=tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        statements=tuple(type(node) for node in tree.body),
    )


@cache
def house() -> dict[Path, Measured]:
    return {path: measured(path) for path in modules()}


def with_code() -> dict[Path, int]:
    return {path: one.code for path, one in house().items() if one.code}


def imported_by(nodes: list[ast.AST]) -> Iterator[Path]:
    for node in nodes:
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
        f"{path.relative_to(ROOT)}: {name}"
        for path, one in house().items()
        for name, lines in one.functions.items()
        if lines > FUNCTION_LINES
    ]
    assert functions == []


def test_the_house_has_few_large_rooms():
    chapters = with_code()
    assert len(chapters) <= MODULES
    assert median(chapters.values()) >= MEDIAN_LINES
    assert len({path.parent for path in chapters}) <= FOLDERS
    imports = sum(one.imports for one in house().values())
    assert imports <= IMPORTS_OF_A_LINE * sum(chapters.values())


def test_few_modules_serve_one_neighbour_alone():
    importers = defaultdict(set)
    for path, one in house().items():
        for other in one.named:
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
        name for one in house().values() for name in one.classes if not name.startswith("_")
    )
    del found["Command"]  # Django's name of each
    assert [name for name, number in found.items() if number > 1] == []


def test_a_packages_init_holds_a_docstring_only():
    for path, one in house().items():
        if path.name == "__init__.py":
            assert one.statements == (ast.Expr,), path


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
