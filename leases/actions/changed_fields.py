"""Which fields a request changes, from what to what, as the audit trail keeps it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from leases.domain.lease import Lease

Document = Mapping[str, Any]
# The server sets these, or a request repeats them as a precondition.
_SET_BY_SERVER = frozenset(
    {
        "creationTimestamp", "deletionTimestamp", "generation", "managedFields", "name",
        "namespace", "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip
_NO_FIELDS = frozenset({"apiVersion", "kind", "status"})
_TIMES = frozenset({"spec.acquireTime", "spec.renewTime"})


class FieldChange(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """One field, such as `spec.holderIdentity` or `metadata.labels[app]`; None: it is absent."""

    field: str
    before: Any = None
    after: Any = None


def as_document(lease: Lease | Document | None) -> dict[str, Any]:
    """Return the fields of a Lease as the API spells them, without absent ones."""
    if lease is None:
        return {}
    if not isinstance(lease, Lease):
        return dict(lease)
    spec = {
        name: value for name, value in msgspec.to_builtins(lease.spec).items() if value is not None
    }
    meta = {"labels": lease.metadata.labels or {}, "annotations": lease.metadata.annotations or {}}
    return {"metadata": meta, "spec": spec}


def leaves(document: Document) -> dict[str, Any]:
    """Return every field that a client may set, by its name."""
    found: dict[str, Any] = {}
    for part, value in document.items():
        if part == "metadata" and isinstance(value, Mapping):
            for name, one in value.items():
                if name not in _SET_BY_SERVER:
                    _collect(f"metadata.{name}", one, found)
        elif part not in _NO_FIELDS:
            _collect(part, value, found)
    return found


def changed_fields(before: Document, body: Document, *, whole: bool) -> list[FieldChange]:
    """Compare a request with the object that it changes.

    `whole`: the body replaces the object, so an absent field is removed; else it is a merge patch,
    in which null removes a field.
    """
    old, new = leaves(before), leaves(body)
    names = dict.fromkeys(new)
    for name in old:
        if whole or _is_removed(name, new):
            names[name] = None
    changes = (FieldChange(name, old.get(name), new.get(name)) for name in names)
    return [one for one in changes if not same(one.field, one.before, one.after)]


def same(field: str, one: Any, other: Any) -> bool:
    """Whether two values of a field are equal; times are compared as moments."""
    if one == other or field not in _TIMES:
        return bool(one == other)
    try:
        return datetime.fromisoformat(str(one)) == datetime.fromisoformat(str(other))
    except (TypeError, ValueError):
        return False


def _collect(name: str, value: Any, found: dict[str, Any]) -> None:
    if not isinstance(value, Mapping):
        found[name] = value
        return
    for inner, one in value.items():
        deep = name.startswith("metadata.")
        _collect(f"{name}[{inner}]" if deep else f"{name}.{inner}", one, found)


def _is_removed(name: str, new: Mapping[str, Any]) -> bool:
    """Whether the patch removes the map that holds the field: `{"metadata": {"labels": null}}`."""
    holder = name.partition("[")[0]
    return holder != name and holder in new and new[holder] is None
