"""The trips of docs/contributing.md are those of the code, and they are short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS, RETURNS = 10, 3
# They hand one room to another.
WIRING = [*sorted((ROOT / "dashboard/serving").rglob("*.py")), ROOT / "dashboard/asgi.py"]


class Stop(NamedTuple):
    """A room of a trip, and the function that the trip passes there."""

    path: Path
    function: str


def trips() -> dict[str, list[Stop]]:
    _, _, text = (ROOT / "docs/contributing.md").read_text().partition("\n## Five trips\n")
    found = {}
    for part in text.partition("\n## ")[0].split("\n### ")[1:]:
        title, _, steps = part.partition("\n")
        stops = re.findall(r"^\d+\. `([^`]+)` `([^`]+)`", steps, re.MULTILINE)
        found[title] = [Stop(ROOT / path, function) for path, function in stops]
    return found


TRIPS = trips()


def steps(stops: list[Stop]) -> list[tuple[Stop, list[Path]]]:
    """Each stop but the first, with the rooms before it."""
    return [
        (stops[number], [stop.path for stop in stops[:number]]) for number in range(1, len(stops))
    ]


@cache
def imported(path: Path) -> frozenset[str]:
    """The dotted names of modules, and of what is in them, that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return frozenset(names)


def imports(path: Path, other: Path) -> bool:
    name = ".".join(other.relative_to(ROOT).with_suffix("").parts)
    return path.suffix == ".py" and name in imported(path)


def defined(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.ClassDef():
                yield node.name
                yield from (f"{node.name}.{one.name}" for one in node.body if hasattr(one, "name"))
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name


def test_five_trips_are_written_down():
    assert len(TRIPS) == 5
    assert all(len(stops) >= 5 for stops in TRIPS.values())


@pytest.mark.parametrize("title", TRIPS)
def test_a_trip_passes_few_rooms_and_seldom_comes_back(title):
    rooms = [stop.path for stop in TRIPS[title]]
    visits = [after for before, after in pairwise([Path(), *rooms]) if after != before]
    assert len(set(rooms)) <= ROOMS
    assert len(visits) - len(set(rooms)) <= RETURNS


def test_every_function_of_a_trip_exists():
    for stop in sorted({stop for stops in TRIPS.values() for stop in stops}):
        if stop.path.suffix == ".py":
            assert stop.function in set(defined(stop.path)), stop
        else:
            assert stop.function in stop.path.read_text(), stop


@pytest.mark.parametrize("title", TRIPS)
def test_a_room_before_it_knows_each_room_of_a_trip(title):
    """By an import; or the wiring, which imports both, hands one to the other."""
    assert [stop for stop, before in steps(TRIPS[title]) if not is_known(stop.path, before)] == []


def is_known(room: Path, before: list[Path]) -> bool:
    if room.suffix == ".html":
        template = str(room.relative_to(ROOT / "templates"))
        return any(template in one.read_text() for one in before)
    if room.suffix != ".py" or room in before:
        return True
    handed_in = any(imports(one, before[-1]) and imports(one, room) for one in WIRING)
    return handed_in or imports(room, before[-1]) or any(imports(one, room) for one in before)
