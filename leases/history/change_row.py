"""Convert a change between the domain's form and the database row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from leases.domain.cause.incident import Cause
from leases.domain.changes.change import Change, ChangeType
from leases.domain.changes.change_identity import identity, not_rebuilt
from leases.domain.kind import Kind
from leases.history.database_text import from_stored, to_stored
from leases.history.read.raw_select import Row, moment

FIELDS = (
    "id", "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "renewed_at", "fields", "writer", "cause", "incident", "identity",
)  # fmt: skip
COLUMNS = ", ".join(FIELDS)
AT = FIELDS.index("at")
WRITTEN = (*FIELDS[1:-3], "identity")  # an incident writes its columns later
_KINDS = {kind.value: kind for kind in Kind}
_CAUSES = {cause.value: cause for cause in Cause}
_CHANGES = {change.value: change for change in ChangeType}


def to_values(change: Change, time: Callable[[datetime | None], Any]) -> tuple[Any, ...]:
    """Return the values of WRITTEN; `time` adapts a datetime for the database."""
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
        to_stored(change.writer),
        identity(change),
    )


def to_change(row: Row) -> Change:
    """Convert a row of FIELDS."""
    (
        _, cluster, namespace, name, uid, kind, change, at, observed_at, holder, previous_holder,
        resource_version, transitions, missed, inferred, inferred_since, gap_seconds, renewed_at,
        fields, writer, cause, incident, stored_identity,
    ) = row  # fmt: skip
    return Change(
        cluster=cluster,
        namespace=namespace,
        name=name,
        uid=uid,
        kind=_KINDS[kind],
        change=_CHANGES[change],
        at=moment(at),
        observed_at=moment(observed_at),
        holder=from_stored(holder),
        previous_holder=from_stored(previous_holder),
        resource_version=resource_version,
        transitions=transitions,
        missed=missed,
        inferred=bool(inferred),
        inferred_since=None if inferred_since is None else moment(inferred_since),
        gap_seconds=gap_seconds,
        renewed_at=None if renewed_at is None else moment(renewed_at),
        fields=tuple(fields.split()) if fields else (),
        writer=from_stored(writer),
        cause=_CAUSES.get(cause),
        incident=incident,
        stored_identity=not_rebuilt(stored_identity),
    )
