"""Write YAML as sigs.k8s.io/yaml's JSONToYAML does: JSON text, read as YAML, written by go-yaml v2.

Source: go-yaml v2's encode.go, sorter.go and emitterc.go. PyYAML's emitter is a sibling of that
one, but wraps, quotes and ends some texts differently.
"""

import re
from functools import cmp_to_key
from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.codec.yaml_input import is_text, load_yaml

_WIDTH = 80
_STEP = 2
_MAX_SIMPLE_KEY = 128
_BREAKS = "\n\r\x85\u2028\u2029"
# Characters that the YAML reader folds or refuses, as UTF-8.
_UNREADABLE = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")
_SPECIAL = re.compile("[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_NOT_PLAIN = re.compile(
    rf"\A(?:---|\.\.\.|[#,\[\]{{}}&*!|>'\"%@` ]|[?:-](?:[ \t]|\Z))|:(?:[ \t]|\Z)| #| \Z|[{_BREAKS}]"
)
_SPACE_BY_BREAK = re.compile(rf"[{_BREAKS}] | [{_BREAKS}]")
_ESCAPES = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r",
    "\x1b": "e", '"': '"', "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip
_PLAIN, _SINGLE, _DOUBLE, _LITERAL = "", "'", '"', "|"


def to_yaml(value: Any) -> bytes:
    """The YAML of a JSON value. Raises YamlError for text that YAML cannot hold."""
    data = dumps(value)
    if _UNREADABLE.search(data):
        value = load_yaml(data).value
    emitter = _Emitter()
    emitter.node(value, -_STEP, in_mapping=False)
    emitter.indent(0)
    return "".join(emitter.parts).encode()


def _style(text: str, *, key: bool) -> str:
    """The style of a text. Source: stringv, and yaml_emitter_select_scalar_style."""
    special = _SPECIAL.search(text) is not None
    if "\n" in text:
        bad = special or key or text.endswith(" ") or re.search(f" [{_BREAKS}]", text)
        return _DOUBLE if bad else _LITERAL
    if not is_text(text) or special or (key and _is_multiline(text)):
        return _DOUBLE
    if not _NOT_PLAIN.search(text):
        return _PLAIN
    return _DOUBLE if _SPACE_BY_BREAK.search(text) else _SINGLE


def _is_multiline(text: str) -> bool:
    return any(char in text for char in _BREAKS)


class _Emitter:
    """The lines so far, and where the last one stands. Depth is bounded by that of a body."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._column = 0
        self._whitespace = True  # the last character separates
        self._indention = True  # the line has nothing but indentation so far

    def node(self, value: Any, indent: int, *, in_mapping: bool) -> None:
        """Write a value whose parent stands at `indent`."""
        if isinstance(value, str):
            self._scalar(value, indent + _STEP if indent >= 0 else _STEP, key=False)
        elif isinstance(value, dict) and value:
            self._mapping(value, indent + _STEP)
        elif isinstance(value, list) and value:
            compact = in_mapping and not self._indention
            self._sequence(value, indent if compact else indent + _STEP)
        else:
            self._indicator(_flow_text(value))

    def _mapping(self, value: dict[str, Any], indent: int) -> None:
        for key in _sorted(value):
            self.indent(indent)
            if not _is_multiline(key) and len(key.encode()) <= _MAX_SIMPLE_KEY:
                self._scalar(key, indent + _STEP, key=True)
                self._indicator(":", spaced=False)
            else:
                self._indicator("?", opens=True)
                self._scalar(key, indent + _STEP, key=False)
                self.indent(indent)
                self._indicator(":", opens=True)
            self.node(value[key], indent, in_mapping=True)

    def _sequence(self, value: list[Any], indent: int) -> None:
        for item in value:
            self.indent(indent)
            self._indicator("-", opens=True)
            self.node(item, indent, in_mapping=False)

    def indent(self, column: int) -> None:
        """Go to this column: on a new line, unless this one is still empty up to there."""
        here = self._column
        if not self._indention or here > column or (here == column and not self._whitespace):
            self._break("\n")
        self._put(" " * (column - self._column))
        self._whitespace = self._indention = True

    def _put(self, text: str) -> None:
        self.parts.append(text)
        self._column += len(text)

    def _break(self, char: str) -> None:
        self.parts.append(char)
        self._column = 0

    def _indicator(self, text: str, *, spaced: bool = True, opens: bool = False) -> None:
        """`spaced`: after a space. `opens`: what follows may be indented on the same line."""
        self._put(f" {text}" if spaced and not self._whitespace else text)
        self._whitespace = False
        self._indention = self._indention and opens

    def _scalar(self, text: str, indent: int, *, key: bool) -> None:
        style = _style(text, key=key)
        if style == _LITERAL:
            self._literal(text, indent)
            return
        self._indicator(style)
        width = _WIDTH if not key else None
        if style == _DOUBLE:
            self._double(text, indent, width)
        else:
            self._flowing(text, indent, width, style)
        self._put(style)
        self._whitespace = self._indention = False

    def _flowing(self, text: str, indent: int, width: int | None, style: str) -> None:
        """A plain or single-quoted text, folded at its single spaces after `width` columns."""
        shown = text.replace("'", "''") if style == _SINGLE else text
        fits = width is None or self._column + len(shown) <= width
        if fits and not _is_multiline(text):
            self._put(shown)
            return
        after_space = after_break = False
        for at, char in enumerate(text):
            if char == " ":
                inside = style == _PLAIN or 0 < at < len(text) - 1
                folds = width is not None and self._column > width and not after_space and inside
                if folds and text[at + 1 : at + 2] != " ":
                    self.indent(indent)
                else:
                    self._put(char)
                after_space = True
            elif char in _BREAKS:
                self._break(char)
                self._indention = after_break = True
            else:
                if after_break:
                    self.indent(indent)
                self._put("''" if char == "'" and style == _SINGLE else char)
                self._indention = after_space = after_break = False

    def _double(self, text: str, indent: int, width: int | None) -> None:
        # go-yaml looks for a byte order mark at the start of the text, whatever character it is at.
        every = text.startswith("\ufeff")
        after_space = False
        for at, char in enumerate(text):
            if every or char in '"\\' or char in _BREAKS or _SPECIAL.match(char):
                self._put(_escaped(char))
                after_space = False
            elif char == " ":
                folds = width is not None and self._column > width and not after_space
                if folds and 0 < at < len(text) - 1:
                    self.indent(indent)
                    self._put("\\" if text[at + 1] == " " else "")
                else:
                    self._put(char)
                after_space = True
            else:
                self._put(char)
                after_space = False

    def _literal(self, text: str, indent: int) -> None:
        hint = str(_STEP) if text[0] == " " or text[0] in _BREAKS else ""
        if text[-1] not in _BREAKS:
            chomp = "-"
        else:
            chomp = "+" if len(text) == 1 or text[-2] in _BREAKS else ""
        self._indicator(f"|{hint}{chomp}")
        self._break("\n")
        self._indention = self._whitespace = True
        for line in re.findall(rf"[^{_BREAKS}]+|[{_BREAKS}]", text):
            if line in _BREAKS:
                self._break(line)
                self._indention = True
            else:
                self.indent(indent)
                self._put(line)
                self._indention = False


def _flow_text(value: Any) -> str:
    """A value that is written in one word."""
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return dumps(value).decode()


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return f"\\{_ESCAPES[char]}"
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _sorted(value: dict[str, Any]) -> list[str]:
    names = sorted(value)
    # Only digits sort otherwise than by their code: as numbers.
    return sorted(names, key=_natural)


def _compare(one: str, other: str) -> int:
    """Order of keys: letters last, digits as numbers. Source: keyList.Less."""
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return len(one) - len(other)
    a, b = one[at], other[at]
    if a.isalpha() or b.isalpha():
        if a.isalpha() and b.isalpha():
            return -1 if a < b else 1
        return -1 if b.isalpha() else 1
    lead = _leads_with_digits(one, at) if "0" in (a, b) else ""
    left, right = _digits(one, at), _digits(other, at)
    first, second = int(f"{lead}{left}" or 0), int(f"{lead}{right}" or 0)
    if first != second:
        return -1 if first < second else 1
    if len(left) != len(right):
        return len(left) - len(right)
    return -1 if a < b else 1


def _leads_with_digits(text: str, at: int) -> str:
    """ "1" if the digits before this place hold one that is not 0."""
    before = re.search(r"\d*\Z", text[:at])
    return "1" if before and before[0].strip("0") else ""


def _digits(text: str, at: int) -> str:
    found = re.compile(r"[0-9]*").match(text, at)
    return found[0] if found else ""


_natural = cmp_to_key(_compare)
