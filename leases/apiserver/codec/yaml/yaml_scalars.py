"""Resolve a YAML scalar to a value by its tag or its text: YAML 1.1 as go-yaml v2 reads it.

Source: go-yaml's resolve.go.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import math
import re

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
