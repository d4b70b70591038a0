"""Write incidents as rows, each once, with copies of their changes; and mark these changes.

Every replica finds the same incidents under the same ids. Of two versions the newer one stays.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import msgspec
from django.db import connection
from msgspec.structs import replace

from leases.domain.cause.node_groups import OF_A_CROWD
from leases.domain.incident import Cause, Incident, Member
from leases.domain.kind import Kind
from leases.history import refused_rows
from leases.history.database import (
    by_index,
    execute_many,
    insert,
    moment,
    select,
    transaction_in_turn,
)
from leases.history.outbox import queue_messages
from leases.history.rows import COLUMNS, Story, incident_values, story_of, to_change
from leases.models import IncidentNote

# Copies of changes in one incident: 300 KB at most. The others are in History, with their cause.
MAX_STORY = 400
MEMBERS_PER_SELECT = 300
_MARK = (
    "UPDATE leases_change SET cause = %s, incident = %s "
    "WHERE cluster = %s AND namespace = %s AND name = %s AND identity = %s"
)
_SETTLE = (
    "UPDATE leases_incident SET settled = TRUE, members = '[]', updated_at = %s "
    "WHERE cluster = %s AND incident = %s AND updated_at <= %s"
)
SWEPT_AT_ONCE = 2000  # changes of a sweep in one transaction
MOMENT = timedelta(microseconds=1)
_NEXT = (
    "SELECT at FROM leases_change WHERE cluster = %s AND at >= %s AND at <= %s "  # noqa: S608
    f"ORDER BY at, id LIMIT 1 OFFSET {SWEPT_AT_ONCE}"
)
_SWEEP = (
    "UPDATE {table} SET cause = %s, incident = %s "  # noqa: S608
    "WHERE cluster = %s AND at >= %s AND at <= %s "
    f"AND kind = '{Kind.HEARTBEAT}' "
    f"AND change IN ({', '.join(repr(str(one)) for one in sorted(OF_A_CROWD))}) "
    "AND (incident IS NULL OR (incident = %s AND cause <> %s) OR incident IN "
    "(SELECT incident FROM leases_incident WHERE cluster = %s AND part_of = %s))"
)
_KEY = ("cluster", "incident")
Name = tuple[str, str, str]  # of a change: namespace and name of its Lease, identity


class Reviewed(msgspec.Struct, frozen=True):
    """An incident as it was concluded at that moment."""

    incident: Incident
    at: datetime


class CauseMark(msgspec.Struct, frozen=True):
    """The cause of one change, and the id of its incident."""

    member: Member
    cause: Cause
    incident: str


class Sweep(msgspec.Struct):
    """Marks the changes of an incident that are too many to list, some in each transaction.

    They are those of heartbeats that ran out or came back in that time, of no other incident.
    """

    incident: str
    cause: Cause
    since: datetime  # what is before it is marked
    until: datetime

    @property
    def is_done(self) -> bool:
        return self.since > self.until


class IncidentBatch(msgspec.Struct, frozen=True):
    """What one transaction writes of a cluster, after the changes it names."""

    cluster: str
    reviewed: tuple[Reviewed, ...]
    marks: tuple[CauseMark, ...]
    own: frozenset[str] = frozenset()  # ids of incidents that this process reported
    sweep: Sweep | None = None
    settled: tuple[Reviewed, ...] = ()  # written before; since then only settled, and over


def write_incidents_of(*batches: IncidentBatch) -> list[refused_rows.RefusedValue]:
    """Write the batches, each of another cluster, and set refused values aside. Returns the
    refusals.

    Raises errors of the database itself; then nothing of the batches is written.
    """
    refused: list[refused_rows.RefusedValue] = []
    with transaction_in_turn(*(batch.cluster for batch in batches)):
        written = {batch.cluster: _write_batch(batch, refused) for batch in batches}
        queue_messages({cluster: reviewed for cluster, (reviewed, _) in written.items()})
        new = refused_rows.set_aside(refused)
    for batch in batches:
        marked_until = written[batch.cluster][1]
        if batch.sweep is not None and marked_until is not None:
            batch.sweep.since = marked_until + MOMENT
    refused_rows.log(new)
    return new


def _write_batch(
    batch: IncidentBatch, refused: list[refused_rows.RefusedValue]
) -> tuple[list[tuple[Incident, datetime]], datetime | None]:
    """Return the incidents as they are stored now, and up to when a sweep has marked changes."""
    make = partial(refused_rows.refusal, cluster=batch.cluster)

    def refuse(one: Reviewed, error: Exception) -> None:
        incident = one.incident
        refused.append(make(refused_rows.What.INCIDENT, incident, error, same=incident.id))

    def refuse_mark(mark: CauseMark, error: Exception) -> None:
        key, same = mark.member.lease, mark.member.identity
        refused.append(make(refused_rows.What.CAUSE, mark, error, same=same, key=key))

    same = same_elsewhere(batch)
    settled = [one for one in batch.settled if one.incident.id not in same]
    changed = (*batch.reviewed, *(one for one in batch.settled if one.incident.id in same))
    reviewed = [one for each in changed for one in _under(same, each)]
    refused_rows.write_all_but_refused(reviewed, write_incidents, refuse)
    settle(batch.cluster, settled)
    marks = [replace(one, incident=same.get(one.incident, one.incident)) for one in batch.marks]
    refused_rows.write_all_but_refused(marks, partial(write_marks, batch.cluster), refuse_mark)
    marked_until = None if batch.sweep is None else sweep_some(batch.cluster, batch.sweep, same)
    return [(one.incident, one.at) for one in (*reviewed, *settled)], marked_until


def same_elsewhere(batch: IncidentBatch) -> dict[str, str]:
    """Return which incidents another replica reported under another id, with that id.

    Two replicas may order the expiries of one moment differently. Then each takes another change
    for the first one of the incident, from which the id follows.
    """
    ids = {mark.incident for mark in batch.marks}
    ids |= {one.incident.id for one in (*batch.reviewed, *batch.settled)}
    stored = dict(_of_incidents(batch.cluster, ids, "incident, part_of"))
    found = {one: heir for one, heir in stored.items() if heir and heir not in batch.own}
    began_with = {
        _name(one.incident.members[0]): one.incident.id
        for one in batch.reviewed
        if one.incident.id not in stored and one.incident.members
    }
    for name, other in _stored(batch.cluster, list(began_with), "incident"):
        if other is not None and other not in batch.own:
            found[began_with[name]] = other
    return found


def _under(same: dict[str, str], reviewed: Reviewed) -> list[Reviewed]:
    """Return an incident under the id of the other replica; ours leads there."""
    other = same.get(reviewed.incident.id)
    if other is None:
        return [reviewed]
    led = replace(reviewed.incident, members=(), part_of=other)
    if reviewed.incident.part_of:
        return [Reviewed(led, reviewed.at)]
    return [Reviewed(replace(reviewed.incident, id=other), reviewed.at), Reviewed(led, reviewed.at)]


def write_incidents(reviewed: Sequence[Reviewed]) -> None:
    """Insert or update these incidents of one cluster. Runs in the caller's transaction."""
    cluster = reviewed[0].incident.cluster
    ids = {one.incident.id for one in reviewed}
    stored = {
        number: (moment(updated_at), story_of(story))
        for number, updated_at, story in _of_incidents(cluster, ids, "incident, updated_at, story")
    }
    newest = {one.incident.id: one for one in sorted(reviewed, key=lambda one: one.at)}
    for number, (updated_at, _) in stored.items():
        if updated_at > newest[number].at:
            del newest[number]
    known = {number: stored[number][1] if number in stored else () for number in newest}
    stories = _stories(cluster, newest.values(), known)
    time = cache(connection.ops.adapt_datetimefield_value)
    values = [
        incident_values(one.incident, stories[number], one.at, time)
        for number, one in newest.items()
    ]
    if values:
        columns = list(values[0])
        sets = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in _KEY)
        insert(
            f"INSERT INTO leases_incident ({', '.join(columns)})",
            [tuple(row.values()) for row in values],
            f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {sets}",
        )
    for one in newest.values():
        if one.incident.part_of:
            notes = IncidentNote.objects.filter(cluster=cluster, incident=one.incident.id)
            notes.update(incident=one.incident.part_of)


def settle(cluster: str, settled: Iterable[Reviewed]) -> None:
    """Store that these incidents are settled. They are over: nobody needs their members."""
    time = connection.ops.adapt_datetimefield_value
    rows = [(time(one.at), cluster, one.incident.id, time(one.at)) for one in settled]
    execute_many(_SETTLE, rows)


def write_marks(cluster: str, marks: Iterable[CauseMark]) -> None:
    """Store the causes of changes. A change that is not stored is left out."""
    rows = [
        (one.cause.value, one.incident, cluster, key.namespace, key.name, one.member.identity)
        for one in marks
        for key in (one.member.lease,)
    ]
    execute_many(_MARK, rows)


def sweep_some(cluster: str, sweep: Sweep, same: dict[str, str]) -> datetime:
    """Mark the next changes of a sweep. Returns up to when they are marked."""
    time = connection.ops.adapt_datetimefield_value
    since, until = time(sweep.since), time(sweep.until)
    number = same.get(sweep.incident, sweep.incident)
    found = select(_NEXT, [cluster, since, until])
    end = moment(found[0][0]) if found else sweep.until
    cause = sweep.cause.value
    named = [cause, number, cluster, since, time(end), number, cause, cluster, number]
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP.format(table=by_index("change_by_time")), named)
    return end


def _stories(
    cluster: str, reviewed: Iterable[Reviewed], known: dict[str, Story]
) -> dict[str, Story]:
    """Add copies of the changes that the stories lack, as far as they are stored."""
    missing: dict[str, list[Name]] = {}
    for one in reviewed:
        story = known[one.incident.id]
        has = {(change.namespace, change.name, identity) for identity, change in story}
        lacks = [name for name in map(_name, one.incident.members) if name not in has]
        missing[one.incident.id] = lacks[: max(0, MAX_STORY - len(story))]
    names = list(dict.fromkeys(name for lacks in missing.values() for name in lacks))
    found = {name: to_change(tuple(row)) for name, *row in _stored(cluster, names, COLUMNS)}
    return {
        number: _in_order((*known[number], *((n[2], found[n]) for n in lacks if n in found)))
        for number, lacks in missing.items()
    }


def _in_order(story: Story) -> Story:
    return tuple(sorted(story, key=lambda one: (one[1].at, one[1].observed_at)))


def _name(member: Member) -> Name:
    return member.lease.namespace, member.lease.name, member.identity


def _of_incidents(cluster: str, ids: Collection[str], columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of the incidents that are stored."""
    if ids:
        marks = ", ".join(["%s"] * len(ids))
        yield from select(
            f"SELECT {columns} FROM leases_incident "  # noqa: S608
            f"WHERE cluster = %s AND incident IN ({marks})",
            [cluster, *ids],
        )


def _stored(cluster: str, names: Sequence[Name], columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of the changes that are stored, each row after its name."""
    for start in range(0, len(names), MEMBERS_PER_SELECT):
        some = names[start : start + MEMBERS_PER_SELECT]
        marks = ", ".join(["(%s, %s, %s)"] * len(some))
        # SQLite uses the whole key only in a join, and joins in this order.
        rows = select(
            "SELECT asked.column1, asked.column2, asked.column3, "  # noqa: S608
            f"{columns} FROM (VALUES {marks}) AS asked "
            "CROSS JOIN leases_change WHERE cluster = %s AND namespace = asked.column1 "
            "AND name = asked.column2 AND identity = asked.column3",
            [*(value for name in some for value in name), cluster],
        )
        for row in rows:
            yield (row[:3], *row[3:])
