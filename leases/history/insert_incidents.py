"""Write incidents as rows, each once, with copies of their changes; and mark these changes.

Every replica finds the same incidents under the same ids. Of two versions the newer one stays.
"""

from collections import defaultdict
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
    joined,
    moment,
    select,
    transaction_in_turn,
)
from leases.history.outbox import queue_messages
from leases.history.rows import COLUMNS, Story, incident_values, story_of, to_change
from leases.models import IncidentNote

# Copies of changes in one incident: 300 KB at most. The others are in History, with their cause.
MAX_STORY = 400
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
_NAME = ("cluster", "namespace", "name", "identity")
Key = tuple[str, str]  # of an incident
Name = tuple[str, str, str, str]  # of a change


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
        same = same_elsewhere(batches)
        settled = [one for batch in batches for one in batch.settled]
        changed = [one for batch in batches for one in batch.reviewed]
        changed += [one for one in settled if _key(one) in same]
        settled = [one for one in settled if _key(one) not in same]
        reviewed = [one for each in changed for one in _under(same, each)]
        refused_rows.write_all_but_refused(reviewed, write_incidents, partial(_refuse, refused))
        settle(settled)
        queue_messages(_by_cluster([*reviewed, *settled]))
        marks = [
            (
                batch.cluster,
                replace(one, incident=same.get((batch.cluster, one.incident), one.incident)),
            )
            for batch in batches
            for one in batch.marks
        ]
        refused_rows.write_all_but_refused(marks, write_marks, partial(_refuse_mark, refused))
        swept = [
            (one, sweep_some(batch.cluster, one, same)) for batch in batches if (one := batch.sweep)
        ]
        new = refused_rows.set_aside(refused)
    for sweep, marked_until in swept:
        sweep.since = marked_until + MOMENT
    refused_rows.log(new)
    return new


def _refuse(refused: list[refused_rows.RefusedValue], one: Reviewed, error: Exception) -> None:
    incident, what = one.incident, refused_rows.What.INCIDENT
    refused.append(
        refused_rows.refusal(what, incident, error, cluster=incident.cluster, same=incident.id)
    )


def _refuse_mark(
    refused: list[refused_rows.RefusedValue], marked: tuple[str, CauseMark], error: Exception
) -> None:
    cluster, mark = marked
    key, same = mark.member.lease, mark.member.identity
    refused.append(
        refused_rows.refusal(
            refused_rows.What.CAUSE, mark, error, cluster=cluster, same=same, key=key
        )
    )


def _key(one: Reviewed) -> Key:
    return one.incident.cluster, one.incident.id


def _by_cluster(reviewed: Iterable[Reviewed]) -> dict[str, list[tuple[Incident, datetime]]]:
    found: dict[str, list[tuple[Incident, datetime]]] = defaultdict(list)
    for one in reviewed:
        found[one.incident.cluster].append((one.incident, one.at))
    return found


def same_elsewhere(batches: Iterable[IncidentBatch]) -> dict[Key, str]:
    """Return which incidents another replica reported under another id, with that id.

    Two replicas may order the expiries of one moment differently. Then each takes another change
    for the first one of the incident, from which the id follows.
    """
    own = {batch.cluster: batch.own for batch in batches}
    reviewed = [one for batch in batches for one in batch.reviewed]
    keys = {(batch.cluster, mark.incident) for batch in batches for mark in batch.marks}
    keys.update(map(_key, reviewed), (_key(one) for batch in batches for one in batch.settled))
    stored = dict(_of_incidents(keys, "part_of"))
    found = {key: heir for key, heir in stored.items() if heir and heir not in own[key[0]]}
    began_with = {
        _name(one.incident, one.incident.members[0]): _key(one)
        for one in reviewed
        if _key(one) not in stored and one.incident.members
    }
    for name, other in _stored(list(began_with), "incident"):
        if other is not None and other not in own[name[0]]:
            found[began_with[name]] = other
    return found


def _under(same: dict[Key, str], reviewed: Reviewed) -> list[Reviewed]:
    """Return an incident under the id of the other replica; ours leads there."""
    other = same.get(_key(reviewed))
    if other is None:
        return [reviewed]
    led = replace(reviewed.incident, members=(), part_of=other)
    if reviewed.incident.part_of:
        return [Reviewed(led, reviewed.at)]
    return [Reviewed(replace(reviewed.incident, id=other), reviewed.at), Reviewed(led, reviewed.at)]


def write_incidents(reviewed: Sequence[Reviewed]) -> None:
    """Insert or update these incidents. Runs in the caller's transaction."""
    stored = {
        key: (moment(updated_at), story_of(story))
        for key, updated_at, story in _of_incidents(set(map(_key, reviewed)), "updated_at, story")
    }
    newest = {_key(one): one for one in sorted(reviewed, key=lambda one: one.at)}
    for key, (updated_at, _) in stored.items():
        if updated_at > newest[key].at:
            del newest[key]
    known = {key: stored[key][1] if key in stored else () for key in newest}
    stories = _stories(newest.values(), known)
    time = cache(connection.ops.adapt_datetimefield_value)
    values = [
        incident_values(one.incident, stories[key], one.at, time) for key, one in newest.items()
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
            cluster, number = _key(one)
            notes = IncidentNote.objects.filter(cluster=cluster, incident=number)
            notes.update(incident=one.incident.part_of)


def settle(settled: Iterable[Reviewed]) -> None:
    """Store that these incidents are settled. They are over: nobody needs their members."""
    time = connection.ops.adapt_datetimefield_value
    execute_many(_SETTLE, [(time(one.at), *_key(one), time(one.at)) for one in settled])


def write_marks(marks: Iterable[tuple[str, CauseMark]]) -> None:
    """Store the causes of changes, by cluster. A change that is not stored is left out."""
    rows = [
        (one.cause.value, one.incident, cluster, key.namespace, key.name, one.member.identity)
        for cluster, one in marks
        for key in (one.member.lease,)
    ]
    execute_many(_MARK, rows)


def sweep_some(cluster: str, sweep: Sweep, same: dict[Key, str]) -> datetime:
    """Mark the next changes of a sweep. Returns up to when they are marked."""
    time = connection.ops.adapt_datetimefield_value
    since, until = time(sweep.since), time(sweep.until)
    number = same.get((cluster, sweep.incident), sweep.incident)
    found = select(_NEXT, [cluster, since, until])
    end = moment(found[0][0]) if found else sweep.until
    cause = sweep.cause.value
    named = [cause, number, cluster, since, time(end), number, cause, cluster, number]
    with connection.cursor() as cursor:
        cursor.execute(_SWEEP.format(table=by_index("change_by_time")), named)
    return end


def _stories(reviewed: Iterable[Reviewed], known: dict[Key, Story]) -> dict[Key, Story]:
    """Add copies of the changes that the stories lack, as far as they are stored, and leave out
    those that belong to other incidents by now.
    """
    missing: dict[Key, list[Name]] = {}
    kept: dict[Key, Story] = {}
    for one in reviewed:
        names = [_name(one.incident, member) for member in one.incident.members]
        mine = {name[1:] for name in names}
        kept[_key(one)] = story = tuple(
            (identity, change)
            for identity, change in known[_key(one)]
            if not mine or (change.namespace, change.name, identity) in mine
        )
        has = {(change.namespace, change.name, identity) for identity, change in story}
        lacks = [name for name in names if name[1:] not in has]
        missing[_key(one)] = lacks[: max(0, MAX_STORY - len(story))]
    wanted = list(dict.fromkeys(name for lacks in missing.values() for name in lacks))
    found = {name: to_change(tuple(row)) for name, *row in _stored(wanted, COLUMNS)}
    return {
        key: _in_order((*kept[key], *((n[3], found[n]) for n in lacks if n in found)))
        for key, lacks in missing.items()
    }


def _in_order(story: Story) -> Story:
    return tuple(sorted(story, key=lambda one: (one[1].at, one[1].observed_at)))


def _name(incident: Incident, member: Member) -> Name:
    return incident.cluster, member.lease.namespace, member.lease.name, member.identity


def _of_incidents(keys: Collection[Key], columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of the incidents that are stored, each row after its key."""
    return joined(list(keys), columns, "leases_incident", _KEY)


def _stored(names: Sequence[Name], columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of the changes that are stored, each row after its name."""
    return joined(names, columns, "leases_change", _NAME)
