"""managedFields, the owners of each field, after creates, updates and patches.

Source: apimachinery/pkg/util/managedfields/internal and structured-merge-diff's merge/update.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.registry.field_sets import Paths, compare, read_fields, write_fields

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
