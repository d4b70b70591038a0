"""Sets of field paths: the fields of an object, differences, and FieldsV1 both ways.

A path is a tuple of FieldsV1 elements: `f:name`, `k:{"uid":"..."}` for an item of a list with a
key, `v:"..."` for an item of a set. Source: sigs.k8s.io/structured-merge-diff (typed/compare.go,
tofieldset.go, fieldpath).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.codec.go_json import decode_stored, dumps, exact_json

Path = tuple[str, ...]
Paths = set[Path]
# FieldsV1 values up to these sizes are read and written from a cache.
CACHED_BYTES, CACHED_PATHS = 2048, 64

# Fields that no manager owns. Source: managedfields/internal/stripmeta.go.
_STRIPPED = {
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
}


class Difference(msgspec.Struct):
    """The paths in which two objects differ."""

    added: Paths
    modified: Paths
    removed: Paths


def compare(old: Any, new: Any, kind: schema.GoType) -> Difference:
    """Added, modified and removed paths, without those that no manager owns."""
    found = Difference(set(), set(), set())
    _compare(old, new, kind, (), found)
    found.added -= _STRIPPED
    found.modified -= _STRIPPED
    found.removed -= _STRIPPED
    return found


_MISSING = object()


def _compare(old: Any, new: Any, kind: schema.GoType, path: Path, found: Difference) -> None:
    if old is not _MISSING and new is not _MISSING and old == new:
        return
    if isinstance(kind, schema.Structure) and not kind.atomic and _are_objects(old, new):
        for name in {**old, **new}:
            before, after = old.get(name, _MISSING), new.get(name, _MISSING)
            if before != after:
                field = kind.fields.get(name)
                inner = field.kind if field else schema.TEXT
                _compare(before, after, inner, (*path, f"f:{name}"), found)
    else:
        _compare_parts(old, new, kind, path, found)


def _are_objects(old: Any, new: Any) -> bool:
    return isinstance(old, dict) and isinstance(new, dict) and bool(old or new)


def _compare_parts(old: Any, new: Any, kind: schema.GoType, path: Path, found: Difference) -> None:
    if is_granular(kind) and (_items(old) or _items(new)):
        before, after = elements(old, kind), elements(new, kind)
        for element in before.keys() | after.keys():
            _compare(
                before.get(element, _MISSING),
                after.get(element, _MISSING),
                kind_of(kind, element),
                (*path, element),
                found,
            )
    elif old is not _MISSING and new is not _MISSING:
        found.modified.add(path)
        return
    if old is _MISSING:
        found.added.add(path)
    elif new is _MISSING:
        found.removed.add(path)


def _items(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def is_granular(kind: schema.GoType) -> bool:
    """Whether managers can own parts of it."""
    if isinstance(kind, schema.Structure):
        return not kind.atomic
    if isinstance(kind, schema.SliceType):
        return kind.key is not None
    return isinstance(kind, schema.Mapping)


def elements(value: Any, kind: schema.GoType) -> dict[str, Any]:
    """The parts of a granular value by their path element. Doubles in a set count once."""
    if isinstance(value, dict):
        return {f"f:{name}": item for name, item in value.items()}
    if isinstance(value, list) and isinstance(kind, schema.SliceType):
        return {item_element(item, kind): item for item in value}
    return {}


def item_element(item: Any, kind: schema.SliceType) -> str:
    if kind.key and isinstance(item, dict):
        return "k:" + dumps({kind.key: item.get(kind.key, "")}).decode()
    return "v:" + dumps(item).decode()


def kind_of(kind: schema.GoType, element: str) -> schema.GoType:
    """The type of a part; text in maps and for unknown fields."""
    if isinstance(kind, schema.Structure):
        field = kind.fields.get(element[2:])
        return field.kind if field else schema.TEXT
    return kind.item if isinstance(kind, schema.SliceType | schema.Mapping) else schema.TEXT


def applied_paths(value: Any, kind: schema.GoType) -> Paths:
    """The paths that an apply of this value owns: leaves, list items, empty or null containers."""
    found: Paths = set()
    _collect(value, kind, (), found)
    return found - _STRIPPED - {()}


def _collect(value: Any, kind: schema.GoType, path: Path, found: Paths) -> None:
    if not is_granular(kind) or not isinstance(value, dict | list):
        found.add(path)
        return
    if value == {}:
        found.add(path)
    for element, item in elements(value, kind).items():
        inner = (*path, element)
        _collect(item, kind_of(kind, element), inner, found)
        if element[:2] != "f:":
            found.add(inner)


def read_fields(value: Any) -> Paths:
    """A FieldsV1 value as paths. Raises ValueError."""
    text = exact_json(value)
    return set(_read_text(text) if len(text) < CACHED_BYTES else _read(value, ()))


@lru_cache(maxsize=1024)
def _read_text(text: bytes) -> frozenset[Path]:
    # The Leases of one kind of writer have the same fields.
    return frozenset(_read(decode_stored(text), ()))


def _read(value: Any, path: Path) -> Paths:
    if not isinstance(value, dict):
        raise ValueError("FieldsV1 is no object")
    found: Paths = set()
    if path and (not value or "." in value):
        found.add(path)
    for element, inner in value.items():
        if element == ".":
            continue
        if element[:2] not in ("f:", "k:", "v:", "i:"):
            raise ValueError(f"no path element: {element}")
        found |= _read(inner, (*path, element))
    return found


def write_fields(paths: Paths) -> dict[str, Any]:
    """The FieldsV1 value of some paths. Do not change it: it is shared."""
    return _write_few(frozenset(paths)) if len(paths) < CACHED_PATHS else _write(paths)


@lru_cache(maxsize=1024)
def _write_few(paths: frozenset[Path]) -> dict[str, Any]:
    return _write(paths)


def _write(paths: Iterable[Path]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _tidy(root)


def _tidy(node: dict[str, Any]) -> dict[str, Any]:
    """Sort elements; leave the `.` of a member out where it stands alone."""
    if node.keys() == {"."}:
        return {}
    found: dict[str, Any] = {".": {}} if "." in node else {}
    for element in sorted(node):
        if element != ".":
            found[element] = _tidy(node[element])
    return found


def shown(path: Path) -> str:
    """A path as conflicts name it: .spec.holderIdentity, .metadata.finalizers[="x"]."""
    out = []
    for element in path:
        if element[:2] == "f:":
            out.append(f".{element[2:]}")
        elif element[:2] == "v:":
            out.append(f"[={element[2:]}]")
        else:
            keys = msgspec.json.decode(element[2:])
            listed = ",".join(f"{name}={dumps(value).decode()}" for name, value in keys.items())
            out.append(f"[{listed}]")
    return "".join(out)
