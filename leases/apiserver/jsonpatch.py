"""JSON patch (RFC 6902) and merge patch (RFC 7386) with the habits of evanphx/json-patch v4.

Its habits: `replace` of a missing member adds it, `add` without a value writes null, what stands
before the first slash of a path is not looked at, indexes may be negative.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from leases.apiserver.gojson import Number

_INDEX = re.compile(r"[+-]?[0-9]+", re.ASCII)


class PatchError(ValueError):
    """The patch cannot be applied."""


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(document: Any, operations: list[Any]) -> Any:
    """A new document. Raises PatchError."""
    document = deepcopy(document)
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise PatchError("an operation is no object")
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise PatchError("an operation has no path")
    value = operation.get("value")
    if kind == "add":
        _add(document, path, value)
    elif kind == "remove":
        _remove(document, path)
    elif kind == "replace":
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("only an object or a list can replace the document")
            return value
        _replace(document, path, value)
    elif kind == "test":
        _test(document, path, value)
    elif kind in ("move", "copy"):
        _carry(document, operation, path, move=kind == "move")
    else:
        raise PatchError(f"unknown operation {kind}")
    return document


def _carry(document: Any, operation: dict[str, Any], path: str, *, move: bool) -> None:
    source = operation.get("from")
    if not isinstance(source, str):
        raise PatchError("an operation has no from")
    container, key = _find(document, source)
    value = deepcopy(_get(container, key))
    if move:
        _remove(document, source)
    elif isinstance(container, dict) and key not in container:
        raise PatchError("nothing to copy")
    _add(document, path, value)


def _find(document: Any, path: str) -> tuple[Any, str]:
    """The container that a path leads into, and the last part of the path."""
    parts = path.split("/")
    if len(parts) < 2:
        raise PatchError(f"no path: {path}")
    container = document
    for part in parts[1:-1]:
        container = _get(container, _unescaped(part))
        if not isinstance(container, dict | list):
            raise PatchError(f"missing path: {path}")
    return container, _unescaped(parts[-1])


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _index(items: list[Any], key: str, *, end: int) -> int:
    if not _INDEX.fullmatch(key):
        raise PatchError(f"no index: {key}")
    index = int(key)
    if not -len(items) <= index < end:
        raise PatchError(f"no such index: {key}")
    return index


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(container, key, end=len(container))]


def _add(document: Any, path: str, value: Any) -> None:
    container, key = _find(document, path)
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        index = _index(container, key, end=len(container) + 1)
        container.insert(index if index >= 0 else index + len(container) + 1, value)


def _remove(document: Any, path: str) -> None:
    container, key = _find(document, path)
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"nothing to remove: {path}")
        del container[key]
    else:
        del container[_index(container, key, end=len(container))]


def _replace(document: Any, path: str, value: Any) -> None:
    container, key = _find(document, path)
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_index(container, key, end=len(container))] = value


def _test(document: Any, path: str, value: Any) -> None:
    if path == "":
        found = document
    else:
        container, key = _find(document, path)
        found = _get(container, key)
    if not _same(found, value):
        raise PatchError(f"testing value {path} failed")


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON texts: 15 is not 15.0, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Number) or isinstance(other, Number):
        return getattr(one, "text", None) == getattr(other, "text", None)
    return type(one) is type(other) and bool(one == other)
