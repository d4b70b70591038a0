"""Resolve a YAML scalar to a value by its tag or its text: YAML 1.1 as go-yaml v2 reads it.

Source: go-yaml's resolve.go.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any

from leases.apiserver.codec.go_json import Number

_TAG = "tag:yaml.org,2002:"
_BOOLS = {
    word: value
    for value, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for base in words
    for word in (base, base.capitalize(), base.upper())
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_NOT_IN_JSON = {
    f"{sign}.{word}": name
    for sign, name in (("", "+Inf"), ("+", "+Inf"), ("-", "-Inf"))
    for word in ("inf", "Inf", "INF")
} | dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII
)
_BASES = ((2, 16), (3, 2), (4, 8), (5, 10))
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_MAX_INTEGER = 70
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt \t])", re.ASCII)


class ScalarError(ValueError):
    """The text does not fit its tag; the message is go-yaml's."""


def scalar(text: str, tag: str | None, *, plain: bool) -> Any:
    """A JSON value. `plain`: not quoted. Raises ScalarError."""
    if not tag:
        return resolve(text) if plain else text
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        return _binary(text)
    if kind == "timestamp":
        if not _DATE.match(text):
            raise ScalarError(f"cannot decode !!str `{text}` as a !!timestamp")
        return text
    if kind not in ("int", "float", "bool", "null"):
        return text
    value = resolve(text)
    found = _kind_of(value)
    if found == "int" and kind == "float":
        return Number(str(value))
    if found != kind:
        raise ScalarError(f"cannot decode !!{found} `{text}` as a !!{kind}")
    return value


def resolve(text: str) -> Any:
    """The value of an untagged, unquoted scalar. Raises ScalarError."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text in _NOT_IN_JSON:
        raise ScalarError(f"json: unsupported value: {_NOT_IN_JSON[text]}")
    digits = text.replace("_", "")
    integer = _integer(digits) if text[0] in "+-0123456789" else None
    if integer is not None:
        return integer
    if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        return Number(digits)
    return text


def _integer(text: str) -> int | None:
    """None for no integer, and for one of more than 64 bits."""
    found = _INTEGER.fullmatch(text)
    if found is None or len(text) > _MAX_INTEGER:
        return None
    size = next(int(found[group], base) for group, base in _BASES if found[group])
    value = -size if found[1] == "-" else size
    return value if -(2**63) <= value < 2**64 else None


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        raise ScalarError("!!binary value contains invalid base64 data") from None


def _kind_of(value: Any) -> str:
    """The short name of the tag of a resolved scalar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "str"
