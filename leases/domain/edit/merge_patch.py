"""JSON merge patches (RFC 7386): apply one, make one, and see what a server left out of one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec

MISSING = object()
VERSION = ("metadata", "resourceVersion")


class Kept(msgspec.Struct, frozen=True):
    """A field that the server did not take as it was sent; `got` is None if it is not there."""

    path: str
    sent: Any
    got: Any


def merged(target: Any, patch: Any) -> Any:
    """Apply a patch; neither argument is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest patch that turns one object into the other. A list is one value."""
    patch: dict[str, Any] = {}
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new and type(old) is type(new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := patch_between(old, new):
                patch[name] = inner
        else:
            patch[name] = new
    return patch


def leaves(
    patch: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of each field that a patch writes or (None) removes."""
    for name, value in patch.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def at_path(item: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path, or MISSING."""
    for name in path:
        if not isinstance(item, dict) or name not in item:
            return MISSING
        item = item[name]
    return item


def not_taken(patch: dict[str, Any], after: dict[str, Any]) -> tuple[Kept, ...]:
    """Return the fields that differ from the patch in the server's answer to it.

    A server drops unknown fields, and fields whose feature gate is off, without an error.
    """
    found = []
    for path, sent in leaves(patch):
        got = at_path(after, path)
        if got is MISSING or got is None:
            got = None
        if sent in (None, {}) and not got:
            continue
        if got != sent and path != VERSION:
            found.append(Kept(".".join(path), sent, got))
    return tuple(found)
