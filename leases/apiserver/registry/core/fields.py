"""Read members of objects that nobody validated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]


def member(value: Any, *names: str) -> Any:
    """The value below these names, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text(value: Any, *names: str) -> str:
    """The text below these names, or ""."""
    found = member(value, *names)
    return found if isinstance(found, str) else ""


def objects(value: Any, *names: str) -> list[Object]:
    """The objects in the list below these names."""
    found = member(value, *names)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def selects_text(*names: str) -> Callable[[Object], str]:
    return lambda obj: text(obj, *names)


def selects_flag(*names: str) -> Callable[[Object], str]:
    return lambda obj: "true" if member(obj, *names) is True else "false"


def condition(obj: Object, kind: str) -> str:
    """The status of a condition, or "" without it."""
    found = (each for each in objects(obj, "status", "conditions") if each.get("type") == kind)
    return next((text(each, "status") for each in found), "")
