"""Find who wrote a change: the field manager whose entry of managedFields owns what moved.

An Update by one manager takes the fields it changes from all others. Source: structured-merge-diff
merge.Updater, k8s.io/apimachinery/pkg/apis/meta/v1 ManagedFieldsEntry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from leases.domain.changes.change import Change, ChangeType
from leases.domain.lease import Lease
from leases.domain.reconfigured_fields import reconfigured_fields

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# The field that each kind of change moves; all others set holderIdentity.
_MOVED = {ChangeType.RESTARTED: "spec.acquireTime", ChangeType.RECOVERED: "spec.renewTime"}
_NOT_WRITTEN = (ChangeType.EXPIRED, ChangeType.DELETED)


class FieldManager(msgspec.Struct, frozen=True, gc=False):
    """One entry of managedFields. A field is `spec.renewTime`, `labels.team`, `annotations.x`."""

    name: str
    operation: str = ""  # Update or Apply
    time: datetime | None = None  # whole seconds, by the API server's clock
    fields: frozenset[str] = frozenset()


Managers = tuple[FieldManager, ...]


def writer_of(change: Change, managers: Managers, before: Lease | None, after: Lease) -> str | None:
    """Return the field manager that wrote a change; None: nothing says so."""
    if not managers or change.change in _NOT_WRITTEN:
        return None
    if change.change is ChangeType.RECONFIGURED and before is not None:
        moved = frozenset(_reconfigured(before, after))
    else:
        moved = frozenset({_MOVED.get(change.change, "spec.holderIdentity")})
    # A removed field has no owner: then the newest entry must do.
    best = max(managers, key=lambda one: (len(one.fields & moved), one.time or _LONG_AGO))
    return best.name or None


def owner_of(field: str, managers: Sequence[FieldManager]) -> str | None:
    """Return the manager that owns a field, the newest if several do."""
    owners = [one for one in managers if field in one.fields]
    return max(owners, key=lambda one: one.time or _LONG_AGO).name if owners else None


def _reconfigured(before: Lease, after: Lease) -> Iterator[str]:
    for field in reconfigured_fields(before, after):
        if field not in ("labels", "annotations"):
            yield f"spec.{field}"
            continue
        old: dict[str, str] = getattr(before.metadata, field) or {}
        new: dict[str, str] = getattr(after.metadata, field) or {}
        yield from (f"{field}.{key}" for key in new if old.get(key) != new[key])
