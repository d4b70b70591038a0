"""YAML as sigs.k8s.io/yaml reads it: the first document, YAML 1.1 scalars, repeated keys told by
line.

The scanner is libyaml, of which the Go one is a port, so that even its messages are the same.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from leases.apiserver.gojson import Number

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_BOOLS = {
    word: value
    for value, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for base in words
    for word in (base, base.capitalize(), base.upper())
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


class YamlError(ValueError):
    """The text is no YAML; the message is go-yaml's, beginning with `yaml: `."""


class Loaded(msgspec.Struct):
    """A document as JSON values, and a line of text for every key that came twice."""

    value: Any
    duplicates: list[str]


def load_yaml(data: bytes) -> Loaded:
    """The first document. Raises YamlError."""
    duplicates: list[str] = []
    try:
        node = next(iter(yaml.compose_all(data.decode("utf-8", "replace"), Loader=_Loader)), None)
    except yaml.MarkedYAMLError as error:
        raise YamlError(_told(error)) from None
    except yaml.YAMLError as error:
        raise YamlError(f"yaml: {error}") from None
    value = None if node is None else _value(node, duplicates)
    return Loaded(value, duplicates)


def _told(error: yaml.MarkedYAMLError) -> str:
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem or 'unknown problem parsing YAML content'}"


def _value(node: yaml.Node, duplicates: list[str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _key(_value(key_node, duplicates))
            if key in found:
                duplicates.append(
                    f'line {key_node.start_mark.line + 1}: key "{key}" already set in map'
                )
            found[key] = _value(value_node, duplicates)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, duplicates) for item in node.value]
    text = str(node.value)
    quoted = isinstance(node, yaml.ScalarNode) and bool(node.style)
    return text if quoted else _scalar(text)


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _scalar(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return Number(text)
    return text


def _integer(text: str) -> int | str:
    digits = text.lstrip("+-")
    sign = -1 if text[0] == "-" else 1
    for prefix, base in (("0b", 2), ("0x", 16), ("0o", 8)):
        if digits.startswith(prefix):
            return sign * int(digits[2:] or "0", base)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
