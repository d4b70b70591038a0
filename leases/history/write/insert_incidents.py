"""Write incidents as rows, each once, with copies of their changes; and mark these changes.

Every replica finds the same incidents under the same ids. Of two versions the newer one stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from leases.domain.cause.incident import Cause, Incident, Member
from leases.domain.changes.change import Change
from leases.history.change_row import COLUMNS, to_change
from leases.history.incident_row import Story, incident_values, story_of
from leases.history.read.raw_select import select
from leases.history.refused_rows import (
    Refusal,
    What,
    log,
    refusal,
    set_aside,
    write_all_but_refused,
)
from leases.history.write.bulk_insert import execute_many
from leases.history.write.replica_lock import transaction_in_turn
from leases.models import ChangeRecord, IncidentNote, IncidentRecord

MAX_STORY = 2000  # copies of changes in one incident
MEMBERS_PER_SELECT = 300
_MARK = (
    "UPDATE leases_change SET cause = %s, incident = %s "
    "WHERE cluster = %s AND namespace = %s AND name = %s AND identity = %s"
)
_KEY = ["cluster", "incident"]


class Reviewed(msgspec.Struct, frozen=True):
    """An incident as it was concluded at that moment."""

    incident: Incident
    at: datetime


class Mark(msgspec.Struct, frozen=True):
    """The cause of one change, and the id of its incident."""

    member: Member
    cause: Cause
    incident: str


class IncidentBatch(msgspec.Struct, frozen=True):
    """What one transaction writes, after the changes it names."""

    cluster: str
    reviewed: tuple[Reviewed, ...]
    marks: tuple[Mark, ...]
    own: frozenset[str] = frozenset()  # ids of incidents that this process told


def write_batch_of_incidents(batch: IncidentBatch) -> list[Refusal]:
    """Write the batch, and set refused values aside. Returns the refusals.

    Raises errors of the database itself; then nothing of the batch is written.
    """
    refused: list[Refusal] = []
    make = partial(refusal, cluster=batch.cluster)

    def refuse(one: Reviewed, error: Exception) -> None:
        incident = one.incident
        refused.append(make(What.INCIDENT, incident, error, same=incident.id))

    def refuse_mark(mark: Mark, error: Exception) -> None:
        key, same = mark.member.lease, mark.member.identity
        refused.append(make(What.CAUSE, mark, error, same=same, key=key))

    with transaction_in_turn(batch.cluster):
        same = same_elsewhere(batch)
        reviewed = [one for told in batch.reviewed for one in _under(same, told)]
        write_all_but_refused(reviewed, write_incidents, refuse)
        marks = [replace(one, incident=same.get(one.incident, one.incident)) for one in batch.marks]
        write_all_but_refused(marks, partial(write_marks, batch.cluster), refuse_mark)
        new = set_aside(refused)
    log(new)
    return new


def same_elsewhere(batch: IncidentBatch) -> dict[str, str]:
    """Return which incidents another replica told under another id, with that id.

    Two replicas may order the expiries of one moment differently. Then each takes another change
    for the first one of the incident, from which the id follows.
    """
    ids = {mark.incident for mark in batch.marks} | {one.incident.id for one in batch.reviewed}
    rows = IncidentRecord.objects.filter(cluster=batch.cluster, incident__in=ids)
    stored = dict(rows.values_list("incident", "part_of"))
    found = {one: heir for one, heir in stored.items() if heir and heir not in batch.own}
    for one in batch.reviewed:
        incident = one.incident
        if incident.id in stored or not incident.members:
            continue
        first = incident.members[0]
        marked = ChangeRecord.objects.filter(
            cluster=batch.cluster,
            namespace=first.lease.namespace,
            name=first.lease.name,
            identity=first.identity,
        )
        for other in marked.values_list("incident", flat=True):
            if other is not None and other not in batch.own:
                found[incident.id] = other
    return found


def _under(same: dict[str, str], told: Reviewed) -> list[Reviewed]:
    """Return an incident under the id of the other replica; ours leads there."""
    other = same.get(told.incident.id)
    if other is None:
        return [told]
    led = replace(told.incident, members=(), part_of=other)
    if told.incident.part_of:
        return [Reviewed(led, told.at)]
    return [Reviewed(replace(told.incident, id=other), told.at), Reviewed(led, told.at)]


def write_incidents(reviewed: Sequence[Reviewed]) -> None:
    """Insert or update these incidents of one cluster. Runs in the caller's transaction."""
    cluster = reviewed[0].incident.cluster
    ids = [one.incident.id for one in reviewed]
    stored = {
        row.incident: row
        for row in IncidentRecord.objects.filter(cluster=cluster, incident__in=ids)
        .only("incident", "updated_at", "story")
    }  # fmt: skip
    rows = []
    for one in reviewed:
        known = stored.get(one.incident.id)
        if known is not None and known.updated_at > one.at:
            continue
        story = _story(one.incident, story_of(known.story) if known else ())
        rows.append(incident_values(one.incident, story, one.at))
        if one.incident.part_of:
            notes = IncidentNote.objects.filter(cluster=cluster, incident=one.incident.id)
            notes.update(incident=one.incident.part_of)
    if rows:
        IncidentRecord.objects.bulk_create(
            [IncidentRecord(**row) for row in rows],
            update_conflicts=True,
            unique_fields=_KEY,
            update_fields=[name for name in rows[0] if name not in _KEY],
        )


def write_marks(cluster: str, marks: Iterable[Mark]) -> None:
    """Store the causes of changes. A change that is not stored is left out."""
    rows = [
        (one.cause.value, one.incident, cluster, key.namespace, key.name, one.member.identity)
        for one in marks
        for key in (one.member.lease,)
    ]
    execute_many(_MARK, rows)


def _story(incident: Incident, known: Story) -> Story:
    """Add copies of the changes that the story lacks, as far as they are stored."""
    has = {(change.namespace, change.name, identity) for identity, change in known}
    room = MAX_STORY - len(known)
    names = ((one.lease.namespace, one.lease.name, one.identity) for one in incident.members)
    missing = [name for name in names if name not in has][: max(0, room)]
    if not missing:
        return known
    more = _stored_changes(incident.cluster, missing)
    return tuple(sorted((*known, *more), key=lambda one: (one[1].at, one[1].observed_at)))


def _stored_changes(
    cluster: str, names: Sequence[tuple[str, str, str]]
) -> list[tuple[str, Change]]:
    found = []
    for start in range(0, len(names), MEMBERS_PER_SELECT):
        some = names[start : start + MEMBERS_PER_SELECT]
        marks = ", ".join(["(%s, %s, %s)"] * len(some))
        # SQLite uses the whole key only in a join, and joins in this order.
        rows = select(
            f"SELECT {COLUMNS}, identity FROM (VALUES {marks}) AS asked "  # noqa: S608
            "CROSS JOIN leases_change WHERE cluster = %s AND namespace = asked.column1 "
            "AND name = asked.column2 AND identity = asked.column3",
            [*(value for name in some for value in name), cluster],
        )
        found += [(row[-1], to_change(row[:-1])) for row in rows]
    return found
