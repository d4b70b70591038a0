"""Strategic merge patch: maps merged, lists merged by key where their type says so, and the $
directives.

Source: apimachinery/pkg/util/strategicpatch/patch.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from copy import deepcopy
from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import Number

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_ITEMS = "$deleteFromPrimitiveList/"
Map = dict[str, Any]


class StrategicError(ValueError):
    """The patch cannot be merged; `code` is the HTTP code it leads to."""

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


def strategic_merge(original: Map, patch: Map, kind: schema.Structure) -> Map:
    """A new object. Raises StrategicError."""
    return _merge_map(deepcopy(original), deepcopy(patch), kind)


def _merge_map(original: Map, patch: Map, kind: schema.GoType | None) -> Map:
    if _DIRECTIVE in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _set_order(original, patch, key, kind)
    for key, value in patch.items():
        deletes = key.startswith(_DELETE_ITEMS)
        name = key.removeprefix(_DELETE_ITEMS)
        if value is None:
            original.pop(name, None)
        elif name not in original or type(original[name]) is not type(value):
            if not deletes:
                original[name] = _without_directives(value)
        elif isinstance(value, dict):
            original[name] = _merge_map(original[name], value, _kind_of(kind, name))
        elif isinstance(value, list):
            original[name] = _merge_list(
                original[name], value, _kind_of(kind, name), deletes=deletes
            )
        else:
            original[name] = value
    return original


def _kind_of(kind: schema.GoType | None, name: str) -> schema.GoType | None:
    if isinstance(kind, schema.Structure) and name in kind.fields:
        return kind.fields[name].kind
    return None


def _directed(patch: Map) -> Map:
    word = patch[_DIRECTIVE]
    if word == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if word == "delete":
        return {}
    raise StrategicError(f"unknown patch type: {go_text(word)} in map: {go_text(patch)}")


def _retain_keys(original: Map, patch: Map) -> None:
    if _RETAIN not in patch:
        return
    retained = patch.pop(_RETAIN)
    if not isinstance(retained, list):
        raise StrategicError("invalid patch format of retainKeys", 400)
    kept = {_identity(key, "") for key in retained if not isinstance(key, dict)}
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE_ITEMS, _ORDER)) and key not in kept:
            raise StrategicError("patch content doesn't match retainKeys list", 422)
    for key in [key for key in original if key not in kept]:
        del original[key]


def _set_order(original: Map, patch: Map, key: str, kind: schema.GoType | None) -> None:
    order = patch.pop(key)
    name = key.removeprefix(_ORDER)
    before, given = original.get(name), patch.get(name)
    for found in (order, before or [], given or []):
        if not isinstance(found, list):
            raise StrategicError("invalid patch format of setElementOrder list", 400)
    if before is None and given is None:
        return
    listing = _kind_of(kind, name)
    merge_key = _merge_key(listing)
    _check_order(given or [], order, merge_key)
    if given is None:
        merged = before or []
    elif before is None:
        merged = _without_directives(given)
    else:
        merged = _merge_list(before, given, listing, deletes=False)
    original[name] = _ordered(merged, order, before or [], merge_key)
    patch.pop(name, None)


def _check_order(given: list[Any], order: list[Any], merge_key: str) -> None:
    """Every element of the patch must stand in the order list, in the same order."""
    places: dict[Any, list[int]] = {}
    for place, item in enumerate(order):
        places.setdefault(_identity(item, merge_key), []).append(place)
    at = 0
    for item in given:
        if isinstance(item, dict) and item.get(_DIRECTIVE) == "delete":
            continue
        later = places.get(_identity(item, merge_key), [])
        following = bisect_left(later, at)
        if following == len(later):
            raise StrategicError(
                f"The order in patch list:\n{go_text(given)}\n doesn't match $setElementOrder "
                "list:\n"
                f"{go_text(order)}\n"
            )
        at = later[following]


def _merge_key(kind: schema.GoType | None) -> str:
    return (kind.key or "") if isinstance(kind, schema.SliceType) else ""


def _identity(item: Any, merge_key: str) -> Any:
    """What makes an item of a list itself; what cannot be hashed is taken by its text."""
    if isinstance(item, dict):
        if merge_key not in item:
            raise StrategicError(
                f"map: {go_text(item)} does not contain declared merge key: {merge_key}"
            )
        item = item[merge_key]
    return go_text(item) if isinstance(item, dict | list) else item


def _merge_list(
    original: list[Any], patch: list[Any], kind: schema.GoType | None, *, deletes: bool
) -> list[Any]:
    merges = isinstance(kind, schema.SliceType) and kind.key is not None
    if deletes:
        gone = {_identity(item, "") for item in patch if not isinstance(item, dict)}
        return [item for item in original if isinstance(item, dict) or item not in gone]
    if not merges:
        return patch
    _check_items(original + patch)
    merge_key = _merge_key(kind)
    if not merge_key:
        if any(isinstance(item, dict) for item in patch):
            raise StrategicError("cannot merge lists without merge key for map[string]interface {}")
        merged = list(dict.fromkeys([*original, *patch]))
        return _ordered(merged, patch, original, merge_key)
    original, patch = _special_items(original, patch, merge_key)
    item_kind = kind.item if isinstance(kind, schema.SliceType) else None
    merged = list(original)
    places: dict[Any, int] = {}
    for place, item in enumerate(merged):
        if merge_key in item:
            places.setdefault(_identity(item, merge_key), place)
    for item in patch:
        at = places.setdefault(_identity(item, merge_key), len(merged))
        if at == len(merged):
            merged.append(item)
        else:
            merged[at] = _merge_map(merged[at], dict(item), item_kind)
    return _ordered(merged, patch, original, merge_key)


def _check_items(items: list[Any]) -> None:
    kinds = {type(item) for item in items}
    if list in kinds:
        raise StrategicError("lists of lists are not supported", 422)
    if len(kinds) > 1:
        raise StrategicError(f"list element types are not identical: {go_text(items)}")


def _special_items(
    original: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[Any], list[Any]]:
    """Apply $patch in items: delete removes the item of the same key, replace all other items."""
    plain, replaces = [], False
    deleted: set[Any] = set()
    for item in patch:
        if not isinstance(item, dict):
            raise StrategicError("invalid patch format of primitive list", 400)
        word = item.get(_DIRECTIVE)
        if word is None:
            plain.append(item)
        elif word == "delete":
            deleted.add(_identity(item, merge_key))
        elif word == "replace":
            replaces = True
        else:
            raise StrategicError(f"unknown patch type: {go_text(word)} in map: {go_text(item)}")
    if deleted:
        original = [item for item in original if _identity(item, merge_key) not in deleted]
    return (plain, []) if replaces else (original, plain)


def _ordered(merged: list[Any], order: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """Items of the patch in its order, the rest in the old order; new items come first."""
    wanted, old = _places(order, merge_key), _places(before, merge_key)
    named = [item for item in merged if _identity(item, merge_key) in wanted]
    rest = [item for item in merged if _identity(item, merge_key) not in wanted]
    named.sort(key=lambda item: wanted[_identity(item, merge_key)])
    rest.sort(key=lambda item: old.get(_identity(item, merge_key), len(before)))
    named_left, rest_left = deque(named), deque(rest)
    result = []
    while named_left and rest_left:
        left = old.get(_identity(rest_left[0], merge_key))
        right = old.get(_identity(named_left[0], merge_key))
        old_first = left is not None and right is not None and left < right
        result.append(rest_left.popleft() if old_first else named_left.popleft())
    return [*result, *named_left, *rest_left]


def _places(items: list[Any], merge_key: str) -> dict[Any, int]:
    """The first position of each item."""
    found: dict[Any, int] = {}
    for place, item in enumerate(items):
        found.setdefault(_identity(item, merge_key), place)
    return found


def _without_directives(value: Any) -> Any:
    """The added value without nulls and directives."""
    if isinstance(value, dict):
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if item is not None and not key.startswith((_DIRECTIVE, _RETAIN, _ORDER, _DELETE_ITEMS))
        }
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, dict) and _DIRECTIVE in item)
        ]
    return value


def go_text(value: Any) -> str:
    """A decoded value as fmt's %v shows it: map[a:1 b:[x y]]."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return f"{float(value):g}"
    return str(value)
