"""JSON patch (RFC 6902) and merge patch (RFC 7386), as evanphx/json-patch v4 applies them.

The library jsonpatch follows the RFC and fails the golden case patch/json-bad: the Go library adds
a missing member on `replace`, and writes null for an `add` without a value. It also ignores what
stands before the first slash of a path, takes negative indexes, and lets all `copy` operations of a
patch copy 3 MiB at most. Of merge patches, it also drops the nulls of objects in lists.
"""

import json
import re
from copy import deepcopy
from typing import Any

from leases.apiserver.codec.go_json import MAX_DEPTH, Number, Pairs, type_word

COPY_LIMIT = 3 * 1024 * 1024
_MAX_INDEX = 10
_INDEX = re.compile(r"[+-]?[0-9]+", re.ASCII)


class PatchError(ValueError):
    """The patch cannot be applied."""


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with a merge patch applied. What the patch touches gets sorted names."""
    if not isinstance(patch, dict):
        return patch if isinstance(target, dict) else _without_nulls(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return dict(sorted(result.items()))


def _without_nulls(value: Any) -> Any:
    """A list whose objects have no nulls and no repeated names; its own nulls stay."""
    if isinstance(value, dict):
        return merge_patch(None, value)
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def operations_error(operations: Any, *, strict: bool) -> str:
    """What is no JSON patch: only strict decoding reads the members of an operation."""
    if not isinstance(operations, list):
        into = "[]handlers.jsonPatchOp" if strict else "jsonpatch.Patch"
        return f"{type_word(operations)} into Go value of type {into}"
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            into = "handlers.jsonPatchOp" if strict else "jsonpatch.Operation"
            return f"{type_word(operation)} into Go value of type {into}"
        pairs = operation.pairs if isinstance(operation, Pairs) else (operation or {}).items()
        for name, value in pairs if strict else ():
            if name in ("op", "path", "from") and not isinstance(value, str | None):
                field = f"Go struct field jsonPatchOp.{name} of type string"
                return f"{type_word(value)} into {field}"
    return ""


def json_patch(document: Any, operations: list[Any]) -> Any:
    """A new document. Raises PatchError. Objects on the operations' paths get sorted names."""
    try:
        document = _all(deepcopy(document), operations)
    except RecursionError:
        raise PatchError("the document became too deep") from None
    _check_depth(document)
    for operation in operations:
        _sort_along(document, operation["path"])
        _sort_along(document, operation.get("from"))
    return document


def _sort_along(document: Any, path: Any) -> None:
    """Sort the names of the objects that a path leads through: Go holds these as maps."""
    for part in path.split("/")[1:] if isinstance(path, str) else ():
        if isinstance(document, dict):
            if list(document) != (names := sorted(document)):
                found = [(name, document[name]) for name in names]
                document.clear()
                document.update(found)
            document = document.get(_unescaped(part))
        elif isinstance(document, list) and _INDEX.fullmatch(part) and len(part) <= _MAX_INDEX:
            document = document[int(part)] if -len(document) <= int(part) < len(document) else None
        else:
            return


def _all(document: Any, operations: list[Any]) -> Any:
    copied = 0
    for operation in operations:
        document, size = _apply(document, operation)
        copied += size
        if copied > COPY_LIMIT:
            raise PatchError("the operations copy too much")
    return document


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise PatchError("the document became too deep")


def _apply(document: Any, operation: Any) -> tuple[Any, int]:
    """The document, and how many bytes were copied in it."""
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
            return value, 0
        _replace(document, path, value)
    elif kind == "test":
        _test(document, path, value)
    elif kind in ("move", "copy"):
        return document, _carry(document, operation, path, move=kind == "move")
    else:
        raise PatchError(f"unknown operation {kind}")
    return document, 0


def _carry(document: Any, operation: dict[str, Any], path: str, *, move: bool) -> int:
    """How many bytes were copied."""
    source = operation.get("from")
    if not isinstance(source, str):
        raise PatchError("an operation has no from")
    container, key = _find(document, source)
    value = _get(container, key)
    if move:
        _remove(document, source)
        _add(document, path, value)
        return 0
    _add(document, path, deepcopy(value))
    return len(json.dumps(value))


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
    if not _INDEX.fullmatch(key) or len(key) > _MAX_INDEX:
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
