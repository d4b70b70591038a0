"""Encode text so that every database can store it. PostgreSQL refuses NUL, which JSON allows.

NUL becomes the symbol ␀; a ␀ or ␛ in the text gets a ␛ before it. Decoding restores the exact text.
"""

from __future__ import annotations

import re
from typing import Any, overload

NUL_SYMBOL = "\N{SYMBOL FOR NULL}"
ESCAPE = "\N{SYMBOL FOR ESCAPE}"
_TO_ESCAPE = re.compile(f"[\0{NUL_SYMBOL}{ESCAPE}]")
_ESCAPED = re.compile(f"{ESCAPE}([{NUL_SYMBOL}{ESCAPE}])|{NUL_SYMBOL}")


@overload
def to_stored(text: str) -> str: ...
@overload
def to_stored(text: str | None) -> str | None: ...
def to_stored(text: str | None) -> str | None:
    """The text without NUL."""
    if not text or not _TO_ESCAPE.search(text):
        return text
    return _TO_ESCAPE.sub(lambda found: NUL_SYMBOL if found[0] == "\0" else ESCAPE + found[0], text)


@overload
def from_stored(text: str) -> str: ...
@overload
def from_stored(text: str | None) -> str | None: ...
def from_stored(text: str | None) -> str | None:
    """Undo `to_stored`."""
    if not text or text.isascii() or not _ESCAPED.search(text):
        return text
    return _ESCAPED.sub(lambda found: found[1] or "\0", text)


def to_stored_json(value: Any) -> Any:
    """Encode all texts of a JSON value: a jsonb column cannot hold NUL."""
    if isinstance(value, str):
        return to_stored(value)
    if isinstance(value, dict):
        return {to_stored(name): to_stored_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_stored_json(item) for item in value]
    return value


def from_stored_json(value: Any) -> Any:
    """Undo `to_stored_json`."""
    if isinstance(value, str):
        return from_stored(value)
    if isinstance(value, dict):
        return {from_stored(name): from_stored_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [from_stored_json(item) for item in value]
    return value
