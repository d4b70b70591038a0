"""Find stored incidents, what people noted about them, and changes that have no cause yet.

History keeps less than the tracker knew: no intervals of renewals, no silences of the cluster, no
managedFields but the name of the writer.
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import msgspec
from django.db.models import Count, Q, QuerySet, Value
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan

from leases.domain import incident as domain
from leases.domain.cause.clue import FORM_WRITER, Clue, is_human_writer
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Cause, ElsewhereIncident, Incident, Member, Standing
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName
from leases.domain.steady_clock import LATEST
from leases.history.database import NUL_SYMBOL, by_index, from_stored, moment, select, to_stored
from leases.history.find_changes import BadCursor, of_lease
from leases.history.rows import (
    COLUMNS,
    Story,
    as_text,
    readable_incident,
    story_of,
    to_change,
    to_incident,
)
from leases.models import IncidentNote, IncidentRecord
from leases.tables.incidents import LONG

logger = logging.getLogger(__name__)

_MAX_MOVES = 10  # withdrawn incidents that one may have been part of, one after the other
_MAX_ID = 64  # characters
FIRST_TIME = datetime.min.replace(tzinfo=UTC)
_LARGE = ("members", "story")  # columns that a list does not need


class StoredIncident(msgspec.Struct, frozen=True, kw_only=True):
    """One incident without its members. `story` has copies of its first changes, and what history
    has of the others, oldest first.
    """

    incident: Incident
    changes: int  # that belong to it
    updated_at: datetime
    story: tuple[Change, ...] = ()  # in a list: empty


class BriefIncident(msgspec.Struct, frozen=True, kw_only=True):
    """What a search shows of an incident."""

    id: str
    cause: Cause
    sentence: str
    began: datetime
    ended: datetime | None


class StoredNote(msgspec.Struct, frozen=True):
    who: str
    at: datetime
    text: str


def find_incidents(
    clusters: str | Sequence[str],
    *,
    causes: Sequence[Cause] = (),
    namespace: str | None = None,
    lease: str | None = None,
    holder: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    going_on: bool | None = None,
    planned: bool = True,
    limit: int,
    before: str | None = None,
) -> list[StoredIncident]:
    """Return the newest incidents that went on at any time of [since, until). Raises BadCursor.

    Without `planned`, those that were planned and went as they should are left out.
    """
    rows = _matching(namespace, lease, holder, until, planned=planned)
    if causes:
        rows = rows.filter(cause__in=causes)
    if going_on is not None:
        rows = rows.filter(ended__isnull=going_on)
    if before:
        began, number = _read_cursor(before)
        rows = rows.filter(Q(began__lt=began) | Q(began=began, incident__lt=number))
    found = [row for part in _from(rows, since) for row in _newest(clusters, part, limit)]
    found.sort(key=lambda row: (row.began, row.incident), reverse=True)
    return [
        StoredIncident(
            incident=readable_incident(row), changes=row.changes, updated_at=row.updated_at
        )
        for row in found[:limit]
    ]


def newest_incidents(cluster: str, most: int) -> list[BriefIncident]:
    """Return incidents, planned ones too, newest first."""
    rows = _matching(None, None, None, None, planned=True).filter(cluster=cluster)
    return [one for _, one in _in_brief(rows.order_by("-began", "-incident")[:most])]


def incidents_called(
    name: str, clusters: Collection[str], most: int
) -> list[tuple[str, BriefIncident]]:
    """Return the incidents with this id, withdrawn ones too, each with its cluster."""
    return _in_brief(IncidentRecord.objects.filter(cluster__in=clusters, incident=name)[:most])


def _in_brief(rows: QuerySet[IncidentRecord]) -> list[tuple[str, BriefIncident]]:
    found = rows.values_list("cluster", "incident", "cause", "sentence", "began", "ended")
    return [
        (
            cluster,
            BriefIncident(
                id=name,
                cause=_cause(cause),
                sentence=from_stored(said.encode(errors="replace").decode()),
                began=began,
                ended=ended,
            ),
        )
        for cluster, name, cause, said, began, ended in found
    ]


def cursor_of(stored: StoredIncident) -> str:
    """Return `before` for the incidents after this one."""
    return f"{stored.incident.began.isoformat()}|{stored.incident.id}"


def count_incidents(
    clusters: str | Sequence[str],
    *,
    namespace: str | None = None,
    lease: str | None = None,
    holder: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    planned: bool = True,
) -> dict[tuple[Cause, bool], int]:
    """Count incidents by cause and by whether they go on; the filters are as above."""
    rows = _matching(namespace, lease, holder, until, planned=planned)
    rows = rows.filter(cluster__in=_names(clusters))
    counts: Counter[tuple[Cause, bool]] = Counter()
    for part in _from(rows, since):
        found = part.order_by().values_list("cause")
        for cause, number, over in found.annotate(number=Count("id"), over=Count("ended")):
            counts[_cause(cause), False] += over
            counts[_cause(cause), True] += number - over
    return {which: number for which, number in counts.items() if number}


def _cause(word: str) -> Cause:
    return Cause(word) if word in set(Cause) else Cause.UNKNOWN


def _story(row: IncidentRecord) -> Story:
    try:
        return story_of(row.story)
    except ValueError:
        return ()


def incident_of(cluster: str, incident: str) -> StoredIncident | None:
    """Return an incident with its story; for a withdrawn one, the one that has its changes now."""
    for _ in range(_MAX_MOVES):
        row = IncidentRecord.objects.filter(cluster=cluster, incident=incident).first()
        if row is None:
            return None
        if not row.part_of:
            found, stored = readable_incident(row), _story(row)
            if row.changes > len(stored):
                known = readable_incident(row, members=True)
                stored = _with_the_rest(known, row.changes, stored)
            story = tuple(
                msgspec.structs.replace(change, cause=found.cause, incident=found.id)
                for _, change in stored
            )
            return StoredIncident(
                incident=found, changes=row.changes, updated_at=row.updated_at, story=story
            )
        incident = row.part_of
    return None


def open_incidents(cluster: str) -> list[Incident]:
    """Return, with their members, the incidents that may still change; oldest first."""
    rows = IncidentRecord.objects.filter(Q(ended=None) | Q(settled=False), cluster=cluster)
    rows = rows.filter(part_of="").order_by("began", "incident").defer("story")
    found = []
    for row in rows:
        try:
            found.append(to_incident(row, members=True))
        except (ValueError, TypeError):
            logger.warning("%s: the incident %s is unreadable", cluster, row.incident)
    return found


def notes_of(cluster: str, incident: str) -> list[StoredNote]:
    """Return the notes of an incident, oldest first."""
    rows = IncidentNote.objects.filter(cluster=cluster, incident=incident).order_by("at", "id")
    return [StoredNote(row.who, row.at, from_stored(row.text)) for row in rows]


def add_note(cluster: str, incident: str, *, who: str, at: datetime, text: str) -> None:
    IncidentNote.objects.create(
        cluster=cluster, incident=incident, who=who, at=at, text=to_stored(text)
    )


def _matching(
    namespace: str | None,
    lease: str | None,
    holder: str | None,
    until: datetime | None,
    *,
    planned: bool,
) -> QuerySet[IncidentRecord]:
    rows = IncidentRecord.objects.filter(part_of="")
    rows = rows.exclude(standing=Standing.REMARK) if planned else rows.filter(shown=True)
    if until is not None:
        rows = rows.filter(began__lt=until)
    if namespace or lease:
        # Names cannot have a quote or a slash.
        start = f'"{namespace}/' if namespace else "/"
        rows = rows.filter(_has("leases", f'{start}{lease}"' if lease else start))
    if holder:
        shown = dict.fromkeys((holder, holder.strip()))
        meant = dict.fromkeys([*shown, *(name.replace(NUL_SYMBOL, "\0") for name in shown)])
        rows = rows.filter(_any("holders", meant) | _any("hosts", meant))
    return rows


def _names(clusters: str | Sequence[str]) -> Sequence[str]:
    return (clusters,) if isinstance(clusters, str) else clusters


_ANY = "*"  # no cluster is called so
_AT_ONCE = 200  # clusters of one statement; SQLite joins 500 selects


def _newest(
    clusters: str | Sequence[str], rows: QuerySet[IncidentRecord], limit: int
) -> list[IncidentRecord]:
    """Read the newest of each cluster by an index, and of these the newest."""
    names, ordered = _names(clusters), rows.order_by("-began", "-incident")
    if len(names) == 1:
        return list(ordered.filter(cluster=names[0]).defer(*_LARGE)[:limit])
    keys = ordered.filter(cluster=_ANY).values_list("began", "incident", "pk")[:limit]
    sql, parameters = keys.query.sql_with_params()
    found: list[int] = []
    for first in range(0, len(names), _AT_ONCE):
        some = names[first : first + _AT_ONCE]
        each = " UNION ALL ".join([f"SELECT * FROM ({sql}) AS newest"] * len(some))  # noqa: S608
        given = [name if one == _ANY else one for name in some for one in parameters]
        newest = f"SELECT * FROM ({each}) AS every ORDER BY 1 DESC, 2 DESC LIMIT {limit}"  # noqa: S608
        found += [row[2] for row in select(newest, given)]
    return list(ordered.filter(pk__in=found).defer(*_LARGE)[:limit])


_WINDOWS = 100  # of one statement


def incidents_beside(
    incidents: Sequence[Incident], clusters: Sequence[str]
) -> dict[str, list[ElsewhereIncident]]:
    """Return those of `clusters` that began at the same time as each of these, by their ids."""
    mine = sorted(one.began for one in incidents if one.shown)
    windows = _windows(mine)
    others = [
        one
        for first in range(0, len(windows), _WINDOWS)
        for one in _shown_between(windows[first : first + _WINDOWS], clusters)
    ]
    found = ((one.id, domain.at_the_same_time(one, others)) for one in incidents)
    return {number: beside for number, beside in found if beside}


def _windows(moments: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """The times around these moments, which are in order."""
    found: list[tuple[datetime, datetime]] = []
    for one in moments:
        first, last = one - domain.AT_THE_SAME_TIME, one + domain.AT_THE_SAME_TIME
        if found and first <= found[-1][1]:
            first = found.pop()[0]
        found.append((first, last))
    return found


def _shown_between(
    windows: Sequence[tuple[datetime, datetime]], clusters: Sequence[str]
) -> list[ElsewhereIncident]:
    marks = ", ".join(["%s"] * len(clusters))
    each = (
        "SELECT cluster, incident, cause, sentence, began, hosts FROM leases_incident "  # noqa: S608
        f"WHERE cluster IN ({marks}) AND shown AND part_of = '' AND began >= %s AND began <= %s"
    )
    given = [value for window in windows for value in (*clusters, *window)]
    return [
        ElsewhereIncident(
            cluster=cluster,
            id=number,
            cause=_cause(cause),
            began=moment(began),
            sentence=from_stored(sentence.encode(errors="replace").decode()),
            hosts=_hosts(hosts),
        )
        for cluster, number, cause, sentence, began, hosts in select(
            " UNION ALL ".join([each] * len(windows)), given
        )
    ]


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except ValueError:  # one row that cannot be read takes away no other
        return ()


def _from(
    rows: QuerySet[IncidentRecord], since: datetime | None
) -> tuple[QuerySet[IncidentRecord], ...]:
    """Leave out what was over by then. Each part has an index that reads few other rows."""
    if since is None:
        return (rows,)
    edge = max(since, FIRST_TIME + LONG) - LONG
    earlier = rows.filter(began__lt=edge)
    inside = Q(began__gte=since) | Q(ended__gt=since) | Q(ended=None)
    return (
        rows.filter(inside, began__gte=edge),
        earlier.filter(lasted_long=True, ended__gt=since),
        earlier.filter(ended=None),
    )


def _any(column: str, texts: Sequence[str] | dict[str, None]) -> Q:
    found = Q()
    for text in texts:
        found |= Q(_has(column, as_text(text)))
    return found


def _has(column: str, part: str) -> GreaterThan:
    return GreaterThan(StrIndex(column, Value(part)), 0)


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    at, _, number = cursor.partition("|")
    try:
        began = datetime.fromisoformat(at)
    except ValueError:
        began = None
    if began is None or began.tzinfo is None or not number or len(number) > _MAX_ID:
        raise BadCursor("before is not a page of these incidents. Start again without it.")
    return began, number


MOST = 5000  # changes that are looked at, the newest: as many as a casebook judges at once
MOST_EARLIER = 20  # changes of one Lease
_NO_WRITE = (ChangeType.EXPIRED, ChangeType.DELETED)


def written_by_persons(cluster: str, since: datetime) -> list[Change]:
    """Return the changes from then on that a person's program wrote, oldest first."""
    newest = (
        f"SELECT {COLUMNS} FROM {by_index('change_by_time')} "  # noqa: S608
        "WHERE cluster = %s AND at >= %s ORDER BY at DESC, id DESC LIMIT %s"
    )
    rows = select(
        f"SELECT * FROM ({newest}) AS newest WHERE writer LIKE %s OR writer = %s",  # noqa: S608
        [cluster, since, MOST, "kubectl%", FORM_WRITER],
    )
    return [to_change(row) for row in reversed(rows)]


def unexplained_changes(cluster: str, since: datetime) -> list[Clue]:
    """Return the changes from then on that have no cause, oldest first.

    Those that came before an explained change of the same Lease are innocent: they were judged.
    """
    rows = select(
        f"SELECT identity, {COLUMNS} FROM {by_index('change_by_time')} "  # noqa: S608
        "WHERE cluster = %s AND at >= %s ORDER BY at DESC, id DESC LIMIT %s",
        [cluster, since, MOST],
    )
    explained: set[tuple[str, str]] = set()
    found = []
    for identity, *row in rows:
        change = to_change(tuple(row))
        name = change.namespace, change.name
        if change.cause is not None:
            explained.add(name)
        elif name not in explained:
            found.append(_clue(change, identity))
    return found[::-1]


def losses_of(incident: Incident) -> list[Clue]:
    """Return the changes of an incident that history has, oldest first."""
    members = set(incident.members)
    return [
        _clue(change, identity, by_person=change.cause is Cause.BY_HAND)
        for identity, change in _changes_of(incident)
        if _member(identity, change) in members
    ]


FEW_LEASES = 100  # are read one by one; of more, all changes of that time


def _changes_of(incident: Incident) -> Story:
    """Return the newest changes of its Leases while it went on, each Lease's oldest first."""
    among, newest = "cluster = %s AND at >= %s AND at <= %s", "ORDER BY at DESC, id DESC LIMIT %s"
    during: tuple[object, ...] = (incident.cluster, incident.began, incident.ended or LATEST)
    if len(incident.leases) > FEW_LEASES:
        table, keys = f"{by_index('change_by_time')} WHERE {among}", [during]
    else:
        table = f"{by_index('change_by_lease')} WHERE {among} AND namespace = %s AND name = %s"
        keys = [(*during, key.namespace, key.name) for key in incident.leases]
    sql = f"SELECT identity, {COLUMNS} FROM {table} {newest}"  # noqa: S608
    rows = [row for key in keys for row in select(sql, (*key, MOST))[::-1]]
    return tuple((identity, to_change(tuple(row))) for identity, *row in rows)


def _with_the_rest(incident: Incident, changes: int, story: Story) -> Story:
    """Add the `changes` for which the story of an incident has no room, if history has them. Of
    many Leases, only if that makes it whole.
    """
    if len(incident.leases) > FEW_LEASES and changes > MOST:
        return story
    members = set(incident.members)
    whole = {_member(*one): one for one in story}
    for identity, change in _changes_of(incident):
        member = _member(identity, change)
        if change.incident == incident.id or member in members:
            whole.setdefault(member, (identity, change))
    return tuple(sorted(whole.values(), key=lambda one: (one[1].at, one[1].observed_at)))


def _member(identity: str, change: Change) -> Member:
    return Member(ObjectName(change.namespace, change.name), identity)


def _clue(change: Change, identity: str, *, by_person: bool = False) -> Clue:
    observed_at = change.renewed_at
    before = None
    if change.change is ChangeType.EXPIRED and observed_at is not None:
        lasted = round((change.at - observed_at).total_seconds())
        before = _lease(change, change.previous_holder, duration=lasted)
    after = None if change.change in _NO_WRITE else _lease(change, change.holder)
    return Clue(
        change=change,
        before=before,
        after=after,
        observed_at=observed_at,
        usual_writer=_usual_writer(change),
        by_person=by_person,
        stored=_member(identity, change),
    )


def _usual_writer(change: Change) -> str | None:
    """Return who wrote the Lease before a person's program did; that program if nobody is known."""
    if change.writer is None or not is_human_writer(change.writer):
        return None
    earlier = of_lease(change.cluster, change.namespace, change.name, MOST_EARLIER)
    known = (
        one.writer
        for one in earlier
        if one.writer and one.at < change.at and one.cause is not Cause.BY_HAND
    )
    return next(known, change.writer)


def _lease(change: Change, holder: str | None, *, duration: int | None = None) -> Lease:
    meta = ObjectMeta(name=change.name, namespace=change.namespace, uid=change.uid)
    return Lease(meta, LeaseSpec(holder_identity=holder, lease_duration_seconds=duration))
