"""Who wrote a field last, as managedFields says."""

from __future__ import annotations

from typing import Any

import msgspec


class FieldWriter(msgspec.Struct, frozen=True):
    """`time` is RFC 3339 text, "" if it is not told."""

    manager: str
    time: str


def writer_of(lease: dict[str, Any], path: tuple[str, ...]) -> FieldWriter | None:
    """Return the manager that wrote the field last; None if no entry has the field."""
    found = [
        FieldWriter(str(entry.get("manager") or ""), str(entry.get("time") or ""))
        for entry in lease.get("metadata", {}).get("managedFields") or ()
        if isinstance(entry, dict) and _owns(entry.get("fieldsV1"), path)
    ]
    return max(found, key=lambda writer: writer.time, default=None)


def _owns(fields: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(fields, dict) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
    return True
