"""Read decimal numbers as Go's strconv does, with its error messages."""

from __future__ import annotations

import re

from leases.wire.status_causes import go_quote

_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_SIGNED = re.compile(r"[-+]?[0-9]+", re.ASCII)
# More digits than any number of 64 bits has. Python itself refuses to read thousands of them.
_MOST_DIGITS = 21


def parse_int(text: str) -> int:
    """An int64. Raises ValueError."""
    return _parse(text, "ParseInt", _SIGNED, -(2**63), 2**63)


def parse_uint(text: str) -> int:
    """A uint64. Raises ValueError."""
    return _parse(text, "ParseUint", _UNSIGNED, 0, 2**64)


def _parse(text: str, function: str, shape: re.Pattern[str], low: int, end: int) -> int:
    why = "invalid syntax"
    if shape.fullmatch(text):
        size = int(text.lstrip("-+0")[:_MOST_DIGITS] or 0)
        value = -size if text[0] == "-" else size
        if low <= value < end:
            return value
        why = "value out of range"
    raise ValueError(f"strconv.{function}: parsing {go_quote(text)}: {why}")
