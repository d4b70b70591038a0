"""Strategic merge patch: maps merged, lists merged by key where their type says so.

Source: apimachinery/pkg/util/strategicpatch/patch.go and util/mergepatch/errors.go.

Source: apimachinery/pkg/util/strategicpatch/{patch,meta}.go.
"""

from collections import deque
from typing import Any

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_values import go_text, go_type, go_word
from leases.wire.status import go_quote

DIRECTIVE = "$patch"
LIST, MAP = go_type([]), go_type({})
NOTHING = object()


class StrategicError(ValueError):
    """The patch cannot be merged; `code` is the HTTP code it leads to."""

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


def as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise bad_type(LIST, value)
    return value


def bad_type(expected: str, value: Any) -> StrategicError:
    received = "%!s(<nil>)" if value is None else go_type(value)
    return StrategicError(f"expected a {expected}, but received a {received}")


def element_type(*lists: list[Any]) -> str:
    """The Go type that all items have."""
    kinds = [go_type(item) for items in lists for item in items]
    if not kinds:
        raise StrategicError("no elements in any of the given slices")
    if kinds[0] == LIST:
        raise StrategicError("lists of lists are not supported", 422)
    if len(set(kinds)) > 1:
        raise StrategicError(f"list element types are not identical: {go_text(list(lists))}")
    return kinds[0]


def check_order(given: list[Any], order: list[Any], merge_key: str) -> None:
    """Every item of the patch must stand in the order list, in the same order."""
    if not given or not order:
        return
    if merge_key:
        for item in given:
            if not isinstance(item, dict):
                raise bad_type(MAP, item)
    left = deque(item for item in given if not merge_key or item.get(DIRECTIVE) != "delete")
    for wanted in order:
        while left and isinstance(left[0], dict) and DIRECTIVE in left[0]:
            left.popleft()
        if left and identity(left[0], merge_key) == identity(wanted, merge_key):
            left.popleft()
    if left:
        raise StrategicError(
            f"The order in patch list:\n{go_text(given)}\n doesn't match $setElementOrder list:\n"
            f"{go_text(order)}\n"
        )


def identity(item: Any, merge_key: str) -> tuple[str, str]:
    """What an item of a list is merged by: the type and text of its key or of itself."""
    if merge_key:
        if not isinstance(item, dict):
            raise bad_type(MAP, item)
        if merge_key not in item:
            raise StrategicError(
                f"map: {go_text(item)} does not contain declared merge key: {merge_key}"
            )
        item = item[merge_key]
    return go_type(item), go_text(item)


def places(items: list[Any], merge_key: str) -> dict[tuple[str, str], int]:
    """The first position of each item."""
    found: dict[tuple[str, str], int] = {}
    for place, item in enumerate(items):
        found.setdefault(identity(item, merge_key), place)
    return found


def ordered(merged: list[Any], order: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """Items of the patch in its order, the rest in the old order; new items come first."""
    if merge_key and merged:
        for place, item in enumerate(order):
            if not isinstance(item, dict):
                raise StrategicError(f"value for key {place} is not a map.")
    items = [(identity(item, merge_key), item) for item in merged]
    wanted, old = places(order, merge_key), places(before, merge_key)
    named = deque(sorted((each for each in items if each[0] in wanted), key=lambda e: wanted[e[0]]))
    rest = deque(
        sorted(
            (each for each in items if each[0] not in wanted),
            key=lambda each: old.get(each[0], len(before)),
        )
    )
    result = []
    while named and rest:
        left, right = old.get(rest[0][0]), old.get(named[0][0])
        old_first = left is not None and right is not None and left < right
        result.append(rest.popleft() if old_first else named.popleft())
    return [item for _, item in (*result, *named, *rest)]


def discard_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            discard_nulls(item)
    elif isinstance(value, list):
        for item in value:
            discard_nulls(item)


def without_directives(value: Any) -> Any:
    """The value without maps that have a directive; changes maps. NOTHING for such a map."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return NOTHING
        for key, item in list(value.items()):
            value[key] = without_directives(item)
            if value[key] is NOTHING:
                del value[key]
        return value
    if isinstance(value, list):
        return [item for item in map(without_directives, value) if item is not NOTHING]
    return value


_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE_ITEMS = "$deleteFromPrimitiveList"
_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_LIST = {
    _ORDER: "invalid patch format of setElementOrder list",
    _DELETE_ITEMS: "invalid patch format of primitive list",
}
Map = dict[str, Any]


def strategic_merge(original: Map, patch: Map, kind: schema.GoType) -> Map:
    """The merged map. Changes both: later errors show the patch as this leaves it.

    Raises StrategicError.
    """
    if DIRECTIVE in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _set_order(original, patch, key, kind)
    for key, value in patch.items():
        deletes = key.startswith(_DELETE_ITEMS)
        name = (_named(key, _DELETE_ITEMS) or key) if deletes else key
        if value is None:
            original.pop(name, None)
        elif name not in original or go_type(original[name]) != go_type(value):
            if not deletes:
                _put(original, name, value)
        elif isinstance(value, dict):
            original[name] = strategic_merge(original[name], value, _field(kind, name).kind)
        elif isinstance(value, list):
            merged = value
            item, merge_key = _items_of(kind, name)
            if merge_key is not None or deletes:
                merged = _merge_list(original[name], value, item, merge_key or "", deletes=deletes)
            original[name] = merged
        else:
            original[name] = value
    return original


def _directed(patch: Map) -> Map:
    word = patch[DIRECTIVE]
    if word == "replace":
        del patch[DIRECTIVE]
        return patch
    if word == "delete":
        return {}
    raise _unknown_directive(patch)


def _unknown_directive(patch: Map) -> StrategicError:
    word = go_word(patch[DIRECTIVE])
    return StrategicError(f"unknown patch type: {word} in map: {go_text(patch)}")


def _retain_keys(original: Map, patch: Map) -> None:
    if _RETAIN not in patch:
        return
    retained = patch.pop(_RETAIN)
    if not isinstance(retained, list):
        raise StrategicError(_BAD_RETAIN, 400)
    kept = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        directive = key.startswith((_DELETE_ITEMS, _ORDER))
        if value is not None and not directive and key not in kept:
            raise StrategicError(_BAD_RETAIN, 400)
    for key in original.keys() - kept:
        del original[key]


def _named(key: str, prefix: str) -> str:
    """The field that a directive is about."""
    before, slash, name = key.partition("/")
    if not slash or before != prefix:
        raise StrategicError(_BAD_LIST[prefix], 400)
    return name


def _set_order(original: Map, patch: Map, key: str, kind: schema.GoType) -> None:
    order = as_list(patch.pop(key))
    name = _named(key, _ORDER)
    before = as_list(original[name]) if name in original else None
    given = as_list(patch[name]) if name in patch else None
    item_kind, found_key = _items_of(kind, name)
    merge_key = found_key or ""
    check_order(given or [], order, merge_key)
    old = list(before or [])
    if given is None and before is None:
        return
    if given is None:
        merged = old
    elif before is None:
        merged = without_directives(given)
    elif found_key is None:
        merged = given
    else:
        merged = _merge_list(before, given, item_kind, merge_key, deletes=False)
    element_type(old, given or [])
    original[name] = ordered(merged, order, old, merge_key)
    patch.pop(name, None)


def _field(kind: schema.GoType, name: str) -> schema.Field:
    """A member of the type. Raises StrategicError for an unknown one."""
    if isinstance(kind, schema.Raw):
        return schema.Field(kind, pointer=True)
    if not isinstance(kind, schema.Structure):
        word = "map" if isinstance(kind, schema.Mapping) else kind.name
        why = "merging an object in json but data type is not struct, instead is"
        raise StrategicError(f"{why}: {word}")
    folded = {known.lower(): field for known, field in kind.fields.items()}
    field = kind.fields.get(name) or folded.get(name.lower())
    if field is None and kind.extensible:
        return schema.Field(schema.ANYTHING, pointer=True)
    if field is None:
        struct = f"struct {kind.short} for the json field {go_quote(name)}"
        raise StrategicError(f"unable to find api field in {struct}")
    return field


def _items_of(kind: schema.GoType, name: str) -> tuple[schema.GoType, str | None]:
    """The type of a list's items, and the key to merge by: "" for a set, None for no merge."""
    field = _field(kind, name)
    if isinstance(field.kind, schema.SliceType):
        return field.kind.item, field.kind.key
    if not field.pointer:
        raise StrategicError("expected slice or array type, but got: struct")
    return field.kind, None


def _merge_list(
    original: list[Any],
    patch: list[Any],
    item_kind: schema.GoType,
    merge_key: str,
    *,
    deletes: bool,
) -> list[Any]:
    if not original and not patch:
        return original
    if element_type(original, patch) != MAP:
        if deletes:
            gone = {identity(item, "") for item in patch}
            return [item for item in original if identity(item, "") not in gone]
        unique = {identity(item, ""): item for item in reversed(original + patch)}
        return ordered(list(reversed(unique.values())), patch, original, "")
    if not merge_key:
        word = "struct" if isinstance(item_kind, schema.Structure) else item_kind.name
        raise StrategicError(f"cannot merge lists without merge key for {word}")
    original, patch = _special_items(original, patch, merge_key)
    merged = list(original)
    known = places(merged, merge_key)
    for item in patch:
        at = known.setdefault(identity(item, merge_key), len(merged))
        if at == len(merged):
            merged.append(item)
        else:
            merged[at] = strategic_merge(merged[at], item, item_kind)
    return ordered(merged, patch, original, merge_key)


def _special_items(
    original: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[Any], list[Any]]:
    """Apply $patch in items: delete removes the item of the same key, replace all other items."""
    plain, replaces = [], False
    gone = set()
    for item in patch:
        word = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            plain.append(item)
        elif word == "delete":
            gone.add(identity(item, merge_key))
        elif word == "replace":
            replaces = True
        elif word == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item)
    if gone:
        original = [
            item
            for item in original
            if merge_key not in item or identity(item, merge_key) not in gone
        ]
    return (plain, []) if replaces else (original, plain)


def _put(original: Map, name: str, value: Any) -> None:
    """Set a new value without the maps in it that have a directive."""
    discard_nulls(value)
    kept = without_directives(value)
    if kept is NOTHING:
        original.pop(name, None)
    else:
        original[name] = kept
