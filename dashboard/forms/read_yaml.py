"""Read YAML that a person typed, and find the line of each field of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

MAX_DEPTH = 20
_PATH = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class YamlProblem(Exception):
    """What is wrong, in one sentence without its place; lines and columns count from 1."""

    def __init__(self, text: str, *, line: int, column: int = 0, path: str = "") -> None:
        super().__init__(text)
        self.text, self.line, self.column, self.path = text, line, column, path

    @property
    def sentence(self) -> str:
        at = f", column {self.column}" if self.column else ""
        return f"Line {self.line}{at}: {self.text}"


class Document(msgspec.Struct, frozen=True):
    """`lines`: the line of each path, such as `spec.holderIdentity`."""

    value: dict[str, Any]
    lines: dict[str, int]

    def line_of(self, path: str) -> int:
        """Return the line of a field, else of the nearest field around it."""
        steps = [key or f"[{index}]" for key, index in _PATH.findall(path)]
        for length in range(len(steps), 0, -1):
            if found := self.lines.get(_joined(steps[:length])):
                return found
        return 1


class _Loader(yaml.SafeLoader):
    """Reads what JSON can say: no dates, no aliases, no keys twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise _at("Write the value instead of an alias (*).", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)


# A time stays text, as in JSON.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str) -> Document:
    """Raises YamlProblem."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            lines = dict(_lines(node)) if node is not None else {}
            value = _value(loader, node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _said(error) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlProblem(f"This is no YAML: {str(error).splitlines()[0]}", line=1) from None
    if not isinstance(value, dict):
        raise YamlProblem("Write the fields of a Lease, such as spec:.", line=1)
    return Document(value, lines)


def _lines(node: yaml.Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """Yield each path with its line. Raises YamlProblem for what JSON cannot say."""
    if len(path) > MAX_DEPTH:
        raise _at("This is too deep for a Lease.", node.start_mark)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = key.value
            if not isinstance(name, str) or key.tag == "tag:yaml.org,2002:merge":
                raise _at("A key is plain text.", key.start_mark)
            if name in seen:
                raise _at(f"{name} is there twice.", key.start_mark)
            seen.add(name)
            yield _joined((*path, name)), key.start_mark.line + 1
            yield from _lines(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield _joined((*path, f"[{index}]")), item.start_mark.line + 1
            yield from _lines(item, (*path, f"[{index}]"))


def _value(loader: _Loader, node: yaml.Node) -> Any:
    """Return a node as JSON would have it: each key is text."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _value(loader, value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item) for item in node.value]
    value = loader.construct_object(node)
    finite = not isinstance(value, float) or math.isfinite(value)
    if value is None or (isinstance(value, str | int | float) and finite):
        return value
    raise _at("JSON has no such value.", node.start_mark)


def _joined(steps: Any) -> str:
    return ".".join(steps).replace(".[", "[")


def _at(text: str, mark: Any) -> YamlProblem:
    return YamlProblem(text, line=mark.line + 1, column=mark.column + 1)


def _said(error: yaml.MarkedYAMLError) -> YamlProblem:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "this is no YAML"
    if "'\\t'" in problem:
        problem = "a tab. YAML indents with spaces only"
    if mark is None:
        return YamlProblem(f"{problem}.", line=1)
    return _at(f"{problem}.", mark)
