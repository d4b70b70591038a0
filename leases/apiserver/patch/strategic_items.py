"""The lists of a strategic merge patch: what identifies an item, their order, their errors.

Source: apimachinery/pkg/util/strategicpatch/patch.go and util/mergepatch/errors.go.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from leases.apiserver.codec.go_fmt import go_text, go_type

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
