"""Decode managedFields, which nothing but the writer of a change needs.

Source: k8s.io/apimachinery/pkg/apis/meta/v1 ManagedFieldsEntry; FieldsV1 prefixes a field's name
with `f:`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from leases.domain.changes.field_managers import FieldManager, Managers
from leases.wire.json_decoding import Undecodable, decoder

MAX_ENTRIES = 50  # of one Lease that are read; each writer has one


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    manager: str = ""
    operation: str = ""
    time: datetime | None = None
    fields: dict[str, Any] | None = msgspec.field(name="fieldsV1", default=None)


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: tuple[_Entry, ...] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Event(msgspec.Struct, frozen=True):
    object: _Object = _Object()


_decode_event = decoder(_Event)


def managers_of_event(line: bytes) -> Managers:
    """Return the field managers of the Lease in a watch line; none if they are unreadable."""
    try:
        event: _Event = _decode_event(line)
    except Undecodable:
        return ()
    return _managers(event.object)


def _managers(one: _Object) -> Managers:
    entries = (one.metadata.managed_fields or ())[:MAX_ENTRIES]
    return tuple(
        FieldManager(entry.manager, entry.operation, entry.time, frozenset(_names(entry.fields)))
        for entry in entries
    )


def _names(fields: dict[str, Any] | None) -> Iterator[str]:
    fields = fields or {}
    metadata = _inner(fields, "metadata")
    for name, part in (
        ("spec", _inner(fields, "spec")),
        ("labels", _inner(metadata, "labels")),
        ("annotations", _inner(metadata, "annotations")),
    ):
        yield from (f"{name}.{key[2:]}" for key in part if key.startswith("f:"))


def _inner(fields: dict[str, Any], name: str) -> dict[str, Any]:
    inner = fields.get(f"f:{name}")
    return inner if isinstance(inner, dict) else {}
