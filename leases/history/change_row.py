"""Convert a change between the domain's form and the database row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leases import models
from leases.domain.changes.change import Change, ChangeType
from leases.domain.changes.change_identity import identity
from leases.domain.kind import Kind
from leases.history.database_text import from_stored, to_stored

COLUMNS = (
    "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "renewed_at", "fields", "identity",
)  # fmt: skip


def to_values(change: Change, time: Callable[[datetime | None], Any]) -> tuple[Any, ...]:
    """Return the values of COLUMNS; `time` adapts a datetime for the database."""
    return (
        change.cluster,
        change.namespace,
        change.name,
        change.uid,
        change.kind.value,
        change.change.value,
        time(change.at),
        time(change.observed_at),
        to_stored(change.holder),
        to_stored(change.previous_holder),
        change.resource_version,
        change.transitions,
        change.missed,
        change.inferred,
        time(change.inferred_since),
        change.gap_seconds,
        time(change.renewed_at),
        " ".join(change.fields),
        identity(change),
    )


def to_row(change: Change) -> models.ChangeRecord:
    """Return an unsaved row."""
    values = to_values(change, lambda moment: moment)
    return models.ChangeRecord(**dict(zip(COLUMNS, values, strict=True)))


def from_row(row: models.ChangeRecord) -> Change:
    return Change(
        cluster=row.cluster,
        namespace=row.namespace,
        name=row.name,
        uid=row.uid,
        kind=Kind(row.kind),
        change=ChangeType(row.change),
        at=row.at,
        observed_at=row.observed_at,
        holder=from_stored(row.holder),
        previous_holder=from_stored(row.previous_holder),
        resource_version=row.resource_version,
        transitions=row.transitions,
        missed=row.missed,
        inferred=row.inferred,
        inferred_since=row.inferred_since,
        gap_seconds=row.gap_seconds,
        renewed_at=row.renewed_at,
        fields=tuple(row.fields.split()),
    )
