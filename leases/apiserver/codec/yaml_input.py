"""Read YAML as sigs.k8s.io/yaml's YAMLToJSON does, with scalars of YAML 1.1.

Source: go-yaml's resolve.go.

PyYAML's scanner is libyaml, of which the Go scanner is a port, so even its messages are the same.
PyYAML's SafeLoader is not enough: with a check for repeated keys added, it fails the golden case
leasecandidate/yaml (a bare `y` is a boolean), and bodies of tests/apiserver/hostile/test_yaml.py,
for it follows deep nesting and aliases of aliases without a bound. So this module builds the
document from parser events, without recursion, and counts an alias as the nodes that it stands for.
"""

import base64
import binascii
import calendar
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from leases.apiserver.codec.go_json import MAX_DEPTH
from leases.apiserver.codec.go_values import float_key, go_syntax, json_number

_TAG = "tag:yaml.org,2002:"
_BOOLS = {
    word: value
    for value, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for base in words
    for word in (base, base.capitalize(), base.upper())
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_NOT_FINITE = {
    f"{sign}.{word}": float(f"{sign}inf")
    for sign in ("", "+", "-")
    for word in ("inf", "Inf", "INF")
} | dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII
)
_BASES = ((2, 16), (3, 2), (4, 8), (5, 10))
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# An underscore that ParseFloat takes: between two digits.
_GROUPED = re.compile(r"(?<=[0-9])_(?=[0-9])", re.ASCII)
_MAX_INTEGER = 70
# What time.Parse takes for the layouts of parseTimestamp.
_CLOCK = r"(\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?"
_TIMESTAMP = re.compile(
    rf"(\d{{4}})-(\d\d?)-(\d\d?)(?:[Tt]{_CLOCK}(?:Z|[-+](\d\d):(\d\d))| +{_CLOCK})?", re.ASCII
)
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
# Texts that are neither null, boolean, number nor timestamp begin with other characters than these.
_HINTS = frozenset("+-0123456789yYnNtTfFoO~.")
Scalar = str | int | float | bool | None


class ScalarError(ValueError):
    """The text does not fit its tag; the message is go-yaml's."""


def scalar(text: str, tag: str | None, *, plain: bool) -> Scalar:
    """`plain`: not quoted. Raises ScalarError."""
    if not tag:
        return resolve(text) if plain else text
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        return _binary(text)
    if kind not in ("int", "float", "bool", "null", "timestamp"):
        return text
    found = "timestamp" if _is_timestamp(text) and kind == "timestamp" else ""
    value = resolve(text)
    found = found or _kind_of(value)
    if found == "int" and kind == "float" and isinstance(value, int) and value < 2**63:
        return float(value)
    if found != kind:
        raise ScalarError(f"cannot decode !!{found} `{text}` as a !!{kind}")
    return text if kind == "timestamp" else value


def resolve(text: str) -> Scalar:
    """The value of an untagged, unquoted scalar. A timestamp stays a text."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] not in _HINTS:
        return text
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if text[0] == ".":
        digits = _GROUPED.sub("", text)
    elif _is_timestamp(text):
        return text
    else:
        digits = text.replace("_", "")
        integer = _integer(digits)
        if integer is not None:
            return integer
    if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        return float(digits)
    return text


def is_text(text: str) -> bool:
    """Whether an unquoted scalar is this text, for every YAML reader. Source: encode.go stringv."""
    if text and text[0] not in _HINTS:
        return True
    return (
        isinstance(resolve(text), str) and not _is_timestamp(text) and not _BASE_60.fullmatch(text)
    )


def _integer(text: str) -> int | None:
    """None for no integer, and for one of more than 64 bits."""
    found = _INTEGER.fullmatch(text)
    if found is None or len(text) > _MAX_INTEGER:
        return None
    size = next(int(found[group], base) for group, base in _BASES if found[group])
    value = -size if found[1] == "-" else size
    if value >= 2**63 and found[1]:
        return None  # ParseUint takes no sign
    return value if -(2**63) <= value < 2**64 else None


def _is_timestamp(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    parts = [int(part or 0) for part in found.groups()]
    year, month, day = parts[:3]
    hour, minute, second = (max(pair) for pair in zip(parts[3:6], parts[8:], strict=True))
    if not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        return False
    return (
        1 <= day <= calendar.monthrange(year or 4, month)[1] and parts[6] <= 24 and parts[7] <= 60
    )


def _binary(text: str) -> str:
    try:
        # Go's decoder skips line ends only.
        found = base64.b64decode(re.sub("[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        raise ScalarError("!!binary value contains invalid base64 data") from None
    return found.decode("utf-8", "leaseboard-go")


def _kind_of(value: Scalar) -> str:
    """The short name of the tag of a resolved scalar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "str"


_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MERGE = "<<"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_FEW_ALIASED, _FEW_NODES = 100, 1000
MAX_NODES = 100_000  # keys and values; a body of that many is read in less than a second
_SMALL, _LARGE = 400_000, 4_000_000
_MOST_OF_SMALL, _MOST_OF_LARGE = 0.99, 0.10
# The stages of Go's conversion, each of which fails at its first error: go-yaml builds its values,
# sigs.k8s.io/yaml converts their keys, encoding/json writes them.
_BUILDS, _CONVERTS, _WRITES = 1, 2, 3


class YamlError(ValueError):
    """The text is not YAML; the message is that of go-yaml or of sigs.k8s.io/yaml."""


class Loaded(msgspec.Struct):
    """A document as JSON values, and a message for every repeated key."""

    value: Any
    duplicates: list[str]


class _Built(msgspec.Struct):
    """A finished node of `size` nodes, aliases expanded.

    `merges`: it is the key `<<`. `lines`: those of a mapping's values, or of a list's mappings.
    """

    value: Any
    size: int = 1
    merges: bool = False
    lines: dict[Any, Any] = {}


class _Open(msgspec.Struct):
    """A mapping or sequence that has not ended. A mapping has Go's keys: text, or (type, value)."""

    value: Any
    anchor: str | None
    line: int
    size: int = 1
    key: _Built | None = None
    lines: dict[Any, Any] = {}


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
    if document.failures:
        raise YamlError(document.failures[min(document.failures)])
    return Loaded(_json(document.value), document.duplicates)


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
    """Builds values from parser events.

    Remembers the first failure of each stage and reads on, for an error of syntax comes before all.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.duplicates: list[str] = []
        self.failures: dict[int, str] = {}
        self._open: list[_Open] = []
        self._anchors: dict[str, _Built | None] = {}
        self._nodes = 0
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.DocumentStartEvent):
            _check_version(event)
        elif isinstance(event, yaml.ScalarEvent):
            merges = event.value == _MERGE and (event.implicit[0] or event.tag == _MERGE_TAG)
            built = _Built(self._scalar(event), merges=merges)
            self._count(1, 0)
            if event.anchor is not None:
                self._anchors[event.anchor] = built
            self._place(built, line)
        elif isinstance(event, yaml.AliasEvent):
            self._place(self._alias(event.anchor), line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()

    def _fail(self, stage: int, message: str) -> None:
        self.failures.setdefault(stage, message)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        try:
            return scalar(event.value, event.tag, plain=event.implicit[0])
        except ScalarError as error:
            self._fail(_BUILDS, f"yaml: {error}")
            return None

    def _begin(self, value: Any, anchor: str | None, line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise YamlError(f"yaml: line {line}: exceeded max depth of {MAX_DEPTH}")
        self._count(1, 0)
        if anchor is not None:
            self._anchors[anchor] = None
        self._open.append(_Open(value, anchor, line))

    def _end(self) -> None:
        done = self._open.pop()
        built = _Built(done.value, done.size, lines=done.lines)
        if done.anchor is not None:
            self._anchors[done.anchor] = built
        self._place(built, done.line)

    def _alias(self, name: str | None) -> _Built:
        if name is None or name not in self._anchors:
            raise YamlError(f"yaml: unknown anchor '{name}' referenced")
        built = self._anchors[name]
        if built is None:
            self._fail(_BUILDS, f"yaml: anchor '{name}' value contains itself")
            return _Built(None)
        self._count(built.size + 1, built.size)
        return _Built(built.value, built.size + 1, lines=built.lines)

    def _count(self, nodes: int, aliased: int) -> None:
        """Refuse a document that consists mostly of aliases, as go-yaml does (decode.go).

        kube-apiserver reads any number of nodes. Here one client must not keep others waiting.
        """
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YamlError(f"yaml: document has more than {MAX_NODES} keys and values")
        self._aliased += aliased
        few = self._aliased <= _FEW_ALIASED or self._nodes <= _FEW_NODES
        if aliased and not few and self._aliased / self._nodes > _allowed_ratio(self._nodes):
            raise YamlError("yaml: document contains excessive aliasing")

    def _place(self, built: _Built, line: int) -> None:
        """Add a finished node, which began on this line, to its mapping or sequence."""
        if not self._open:
            self.value = built.value
            self._check(built.value)
            return
        into = self._open[-1]
        into.size += built.size
        if isinstance(into.value, list):
            if built.lines:
                into.lines[len(into.value)] = built.lines
            into.value.append(built.value)
        elif into.key is None:
            into.key = built
            if isinstance(built.value, dict | list) and not built.merges:
                self._fail(_BUILDS, f"yaml: invalid map key: {go_syntax(built.value)}")
            return
        else:
            self._put(into, into.key, built, line)
            into.key = None
        self._check(built.value)

    def _check(self, value: Any) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
            self._fail(_WRITES, f"json: unsupported value: {shown}")

    def _put(self, into: _Open, key: _Built, built: _Built, line: int) -> None:
        if key.merges:
            self._merge(into, built)
            return
        if isinstance(key.value, dict | list):
            return
        if key.value is None or (isinstance(key.value, int) and key.value >= 2**63):
            kind = "%!s(<nil>)" if key.value is None else "uint64"
            shown = f"key: {go_syntax(key.value)}, value: {go_syntax(built.value)}"
            self._fail(_CONVERTS, f"unsupported map key of type: {kind}, {shown}")
        # In Python 1 == 1.0 == True.
        same = key.value if isinstance(key.value, str) else (type(key.value), key.value)
        self._set(into, same, built.value, line)

    def _set(self, into: _Open, key: Any, value: Any, line: int) -> None:
        if key in into.value:
            shown = go_syntax(key if isinstance(key, str) else key[1])
            self.duplicates.append(f"line {line}: key {shown} already set in map")
        into.value[key] = value
        into.lines[key] = line

    def _merge(self, into: _Open, built: _Built) -> None:
        """Apply the merge key of YAML 1.1; of several maps, earlier ones win."""
        maps, lines = [built.value], [built.lines]
        if isinstance(built.value, list):
            maps = built.value[::-1]
            lines = [built.lines.get(index, {}) for index in reversed(range(len(maps)))]
        if not all(isinstance(each, dict) for each in maps):
            wanted = "map merge requires map or sequence of maps as the value"
            self._fail(_BUILDS, f"yaml: {wanted}")
            return
        for each, line_of in zip(maps, lines, strict=True):
            for key, value in each.items():
                self._set(into, key, value, line_of[key])


def _json(value: Any) -> Any:
    """What encoding/json reads of what it wrote: sorted names, whole numbers without a point."""
    if isinstance(value, dict):
        named = {key if isinstance(key, str) else _key(key[1]): key for key in value}
        return {name: _json(value[named[name]]) for name in sorted(named)}
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 10**19):
        return json_number(value)
    return value


def _key(value: Any) -> str:
    """A key that is no text, as a name in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_key(value) if isinstance(value, float) else str(value)


def _check_version(event: yaml.DocumentStartEvent) -> None:
    """Only libyaml takes YAML 1.2."""
    if event.version not in (None, (1, 1)):
        line = event.start_mark.line if event.start_mark else 0
        where = f"line {line}: " if line else ""
        raise YamlError(f"yaml: {where}found incompatible YAML document")


def _allowed_ratio(nodes: int) -> float:
    """The share of a document of that many nodes that aliases may produce."""
    if nodes <= _SMALL:
        return _MOST_OF_SMALL
    if nodes >= _LARGE:
        return _MOST_OF_LARGE
    part = (nodes - _SMALL) / (_LARGE - _SMALL)
    return _MOST_OF_SMALL - (_MOST_OF_SMALL - _MOST_OF_LARGE) * part
