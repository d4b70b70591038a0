"""A change as the domain has it, and as the database keeps it."""

from __future__ import annotations

from leases import models
from leases.domain.change import Change, ChangeType
from leases.domain.identity import identity
from leases.domain.kind import Kind


def to_row(change: Change) -> models.Change:
    """An unsaved row."""
    return models.Change(
        cluster=change.cluster,
        namespace=change.namespace,
        name=change.name,
        uid=change.uid,
        kind=change.kind.value,
        change=change.change.value,
        at=change.at,
        observed_at=change.observed_at,
        holder=change.holder,
        previous_holder=change.previous_holder,
        resource_version=change.resource_version,
        transitions=change.transitions,
        missed=change.missed,
        inferred=change.inferred,
        inferred_since=change.inferred_since,
        gap_seconds=change.gap_seconds,
        renewed_at=change.renewed_at,
        fields=" ".join(change.fields),
        identity=identity(change),
    )


def from_row(row: models.Change) -> Change:
    """The change that a row keeps."""
    return Change(
        cluster=row.cluster,
        namespace=row.namespace,
        name=row.name,
        uid=row.uid,
        kind=Kind(row.kind),
        change=ChangeType(row.change),
        at=row.at,
        observed_at=row.observed_at,
        holder=row.holder,
        previous_holder=row.previous_holder,
        resource_version=row.resource_version,
        transitions=row.transitions,
        missed=row.missed,
        inferred=row.inferred,
        inferred_since=row.inferred_since,
        gap_seconds=row.gap_seconds,
        renewed_at=row.renewed_at,
        fields=tuple(row.fields.split()),
    )
