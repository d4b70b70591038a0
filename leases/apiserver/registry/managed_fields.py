"""managedFields, the owners of each field, and sets of field paths.

A path is a tuple of FieldsV1 elements: `f:name`, `k:{"uid":"..."}` for an item of a list with a
key, `v:"..."` for an item of a set. Source: sigs.k8s.io/structured-merge-diff (typed/compare.go,
tofieldset.go, fieldpath).

Source: apimachinery/pkg/util/managedfields/internal and structured-merge-diff's merge/update.go.
"""

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


MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"
APPLY, UPDATE = "Apply", "Update"
Object = dict[str, Any]


class Manager(msgspec.Struct, frozen=True, order=True):
    """A manager. An Update and an Apply of the same name are two managers."""

    name: str
    operation: str
    version: str
    subresource: str = ""


class Owned(msgspec.Struct):
    """The paths of a manager, and when it last got one."""

    paths: Paths
    time: str | None = None


Managed = dict[Manager, Owned]


def read_managed(entries: list[Object]) -> Managed:
    """Decode managedFields. Raises ValueError when an entry cannot be read."""
    found: Managed = {}
    for entry in entries:
        operation = entry.get("operation", "")
        if operation not in (APPLY, UPDATE):
            raise ValueError(f"operation is {operation}")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError("fieldsType is not FieldsV1")
        version = "" if operation == APPLY else entry.get("apiVersion", "")
        manager = Manager(
            entry.get("manager", ""), operation, version, entry.get("subresource", "")
        )
        found[manager] = Owned(read_fields(entry.get("fieldsV1") or {}), entry.get("time"))
    return found


def write_managed(managed: Managed, version: str) -> list[Object]:
    """Encode: Apply before Update, then by time, then by name."""
    entries = []
    order = sorted(
        managed.items(), key=lambda pair: (pair[0].operation, pair[1].time or "", pair[0])
    )
    for manager, owned in order:
        entry: Object = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.version or version,
        }
        if owned.time is not None:
            entry["time"] = owned.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": write_fields(owned.paths)}
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def current(live: Object | None, new: Object) -> Managed:
    """The managedFields before the write: the client's if readable, else the stored ones.

    An empty list and a single empty entry clear them.
    """
    given = new["metadata"].get("managedFields")
    if given in ([], [{}]):
        return {}
    try:
        found = read_managed(given or [])
    except ValueError:
        found = {}
    if found or live is None:
        return found
    try:
        return read_managed(live["metadata"].get("managedFields") or [])
    except ValueError:
        return {}


def after_update(
    live: Object | None,
    new: Object,
    name: str,
    version: str,
    kind: schema.Structure,
    now: str,
    subresource: str = "",
) -> list[Object]:
    """The managedFields of `new`, written by manager `name` over `live` (None at creation)."""
    if live is None:
        managed: Managed = {}
    else:
        managed = current(live, new)
        if not managed:
            return []
    manager = Manager(name or "unknown", UPDATE, version, subresource)
    return write_managed(updated(managed, live, new, manager, kind, now), version)


def updated(
    managed: Managed,
    live: Object | None,
    new: Object,
    manager: Manager,
    kind: schema.Structure,
    now: str,
) -> Managed:
    """Give changed paths to the manager, take them from the others, drop removed ones."""
    difference = compare(kind.zero if live is None else live, new, kind)
    taken = difference.modified | difference.added
    result: Managed = {}
    for other, owned in managed.items():
        kept = owned.paths - taken - difference.removed
        if kept:
            result[other] = Owned(kept, owned.time)
    if taken:
        before = result.get(manager)
        result[manager] = Owned(taken | (before.paths if before else set()), now)
    return capped(result, manager.version)


def capped(managed: Managed, version: str) -> Managed:
    """At most ten Update managers: the oldest are merged into one."""
    updaters = [manager for manager in managed if manager.operation == UPDATE]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return managed
    updaters.sort(key=lambda manager: (managed[manager].time or "", manager))
    bucket = Manager(ANCIENT, UPDATE, version)
    excess = len(updaters) - MAX_UPDATE_MANAGERS + 1
    result = dict(managed)
    merged = Owned(set())
    for manager in updaters[:excess]:
        owned = result.pop(manager)
        merged = Owned(merged.paths | owned.paths, owned.time)
    if bucket in result:
        merged.paths |= result[bucket].paths
    result[bucket] = merged
    return result


def without_times(entries: list[Object]) -> list[Object]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries]


def keep_times_of_no_change(new: Object, old: Object) -> None:
    """Keep the old managedFields when only their times differ: the write changes nothing."""
    after = new["metadata"].get("managedFields")
    before = old["metadata"].get("managedFields")
    if after is None or before is None or new.get("spec") != old.get("spec"):
        return
    if new | {"metadata": None} != old | {"metadata": None}:
        return
    if without_times(after) == without_times(before):
        kept = new["metadata"] | {"managedFields": before}
        if kept == old["metadata"]:
            new["metadata"] = kept
