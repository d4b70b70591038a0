"""Read YAML as sigs.k8s.io/yaml does: the first document, with the line of every repeated key.

PyYAML's scanner is libyaml, of which the Go scanner is a port, so even its messages are the same.
PyYAML's SafeLoader is not enough: with a check for repeated keys added, it fails the golden case
leasecandidate/yaml (a bare `y` is a boolean), and bodies of tests/apiserver/hostile/test_yaml.py,
for it follows deep nesting and aliases of aliases without a bound. So this module builds the
document from parser events, without recursion, and counts an alias as the nodes that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from leases.apiserver.codec.go_json import MAX_DEPTH, Number
from leases.apiserver.codec.yaml_scalars import ScalarError, scalar

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MERGE = "<<"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_FEW_ALIASED, _FEW_NODES = 100, 1000
_SMALL, _LARGE = 400_000, 4_000_000
_MOST_OF_SMALL, _MOST_OF_LARGE = 0.99, 0.10


class YamlError(ValueError):
    """The text is not YAML; the message is go-yaml's and begins with `yaml: `."""


class Loaded(msgspec.Struct):
    """A document as JSON values, and a message for every repeated key."""

    value: Any
    duplicates: list[str]


class _Built(msgspec.Struct):
    """A finished node of `size` nodes, aliases expanded. `merges`: it is the key `<<`."""

    value: Any
    size: int = 1
    merges: bool = False


class _Open(msgspec.Struct):
    """A mapping or sequence that has not ended."""

    value: Any
    anchor: str | None
    size: int = 1
    key: _Built | None = None
    key_line: int = 0


def load_yaml(data: bytes) -> Loaded:
    """The first document. Raises YamlError."""
    document = _Document()
    try:
        for event in _first_document(data):
            document.take(event)
    except yaml.MarkedYAMLError as error:
        raise YamlError(_message(error)) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"yaml: {error.reason}") from None
    except ScalarError as error:
        raise YamlError(f"yaml: {error}") from None
    return Loaded(document.value, document.duplicates)


def _first_document(data: bytes) -> Iterator[yaml.Event]:
    for event in yaml.parse(data, Loader=_Loader):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        yield event


def _message(error: yaml.MarkedYAMLError) -> str:
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem or 'unknown problem parsing YAML content'}"


class _Document:
    """Builds values from parser events."""

    def __init__(self) -> None:
        self.value: Any = None
        self.duplicates: list[str] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Built | None] = {}
        self._nodes = 0
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            value = scalar(event.value, event.tag, plain=event.implicit[0])
            merges = event.value == _MERGE and (event.implicit[0] or event.tag == _MERGE_TAG)
            built = _Built(value, merges=merges)
            self._count(1, 0)
            if event.anchor is not None:
                self._anchors[event.anchor] = built
            self._place(built, line)
        elif isinstance(event, yaml.AliasEvent):
            self._place(self._alias(event.anchor), line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(line)

    def _begin(self, value: Any, anchor: str | None, line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise YamlError(f"yaml: line {line}: exceeded max depth of {MAX_DEPTH}")
        self._count(1, 0)
        if anchor is not None:
            self._anchors[anchor] = None
        self._open.append(_Open(value, anchor))

    def _end(self, line: int) -> None:
        done = self._open.pop()
        built = _Built(done.value, done.size)
        if done.anchor is not None:
            self._anchors[done.anchor] = built
        self._place(built, line)

    def _alias(self, name: str | None) -> _Built:
        if name is None or name not in self._anchors:
            raise YamlError(f"yaml: unknown anchor '{name}' referenced")
        built = self._anchors[name]
        if built is None:
            raise YamlError(f"yaml: anchor '{name}' value contains itself")
        self._count(built.size + 1, built.size)
        return _Built(built.value, built.size + 1)

    def _count(self, nodes: int, aliased: int) -> None:
        """Refuse a document that consists mostly of aliases, as go-yaml does (decode.go)."""
        self._nodes += nodes
        self._aliased += aliased
        few = self._aliased <= _FEW_ALIASED or self._nodes <= _FEW_NODES
        if aliased and not few and self._aliased / self._nodes > _allowed_ratio(self._nodes):
            raise YamlError("yaml: document contains excessive aliasing")

    def _place(self, built: _Built, line: int) -> None:
        """Add a finished node to its mapping or sequence."""
        if not self._open:
            self.value = built.value
            return
        into = self._open[-1]
        into.size += built.size
        if isinstance(into.value, list):
            into.value.append(built.value)
        elif into.key is None:
            into.key, into.key_line = built, line
        else:
            self._put(into, into.key, built.value)
            into.key = None

    def _put(self, into: _Open, key: _Built, value: Any) -> None:
        if key.merges:
            _merge(into.value, value)
            return
        name = _key(key.value)
        if name in into.value:
            self.duplicates.append(f'line {into.key_line}: key "{name}" already set in map')
        into.value[name] = value


def _allowed_ratio(nodes: int) -> float:
    """The share of a document of that many nodes that aliases may produce."""
    if nodes <= _SMALL:
        return _MOST_OF_SMALL
    if nodes >= _LARGE:
        return _MOST_OF_LARGE
    part = (nodes - _SMALL) / (_LARGE - _SMALL)
    return _MOST_OF_SMALL - (_MOST_OF_SMALL - _MOST_OF_LARGE) * part


def _merge(into: dict[str, Any], value: Any) -> None:
    """Apply the merge key of YAML 1.1; of several maps, earlier ones win."""
    maps = list(reversed(value)) if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in maps):
        raise YamlError("yaml: map merge requires map or sequence of maps as the value")
    for each in maps:
        into.update(each)


def _key(value: Any) -> str:
    """A key as JSON has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise YamlError(f"yaml: invalid map key: {value}")
    if value is None:
        raise YamlError("unsupported map key of type: nil")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return repr(float(value)).removesuffix(".0")
    return str(value)
