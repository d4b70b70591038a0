"""Decoded JSON as Go's fmt shows it in messages: %v, %#v, %s and %T."""

from __future__ import annotations

from typing import Any

from leases.apiserver.codec.go_values import go_float
from leases.wire.status_causes import go_quote

_MAP, _LIST = "map[string]interface {}", "[]interface {}"


def go_type(value: Any) -> str:
    """%T."""
    if value is None:
        return "<nil>"
    names = {dict: _MAP, list: _LIST, str: "string", bool: "bool", float: "float64"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "int64")


def go_text(value: Any) -> str:
    """%v: map[a:1 b:[x y]]."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return _scalar(value) if not isinstance(value, str) else value


def _scalar(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)


def go_word(value: Any) -> str:
    """%s, which is for texts only: %!s(int64=5) for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_word(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_word, value))}]"
    kind = "" if value is None else f"{go_type(value)}="
    return f"%!s({kind}{_scalar(value)})"


def go_syntax(value: Any) -> str:
    """%#v: map[string]interface {}{"a":1}."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, dict):
        pairs = ", ".join(f"{go_quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"{_MAP}{{{pairs}}}"
    if isinstance(value, list):
        return f"{_LIST}{{{', '.join(map(go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else _scalar(value)
