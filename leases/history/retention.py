"""Delete old changes, incidents and lines of the security log. Audit rows are never deleted.

For each Lease that existed at the cut these stay: its last change before it, the last that names
the holder, and the one that began its term or gap. Later changes depend on them. Finding rows takes
long but only reads; deleting is short, and is done by the writer.

Incidents that go on, and those with notes, stay.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from leases import models
from leases.domain.change import ChangeType
from leases.domain.lease import ObjectName
from leases.history.database import by_index, moment, select, take_turn
from leases.history.indexed_search import Position, stored_clusters
from leases.history.states_as_of import kept_at
from leases.models import IncidentNote, IncidentRecord, SecurityRecord

BATCH = 50  # rows deleted in one transaction: the writer may wait for it
WALKED = 1000  # rows read in one step
MOMENT = timedelta(microseconds=1)


def forgettable(
    cluster: str, before: datetime, *, since: datetime | None = None
) -> Iterator[list[int]]:
    """Yield batches of rows that may be deleted. Empty batches allow a pause.

    `since` is the cut of an earlier run, which deleted everything before it.
    """
    handled: set[ObjectName] = set()
    doomed: list[int] = []
    reached: Position | None = (since, 0) if since is not None else None
    while True:
        names, reached = _walk(cluster, before, reached)
        new = [name for name in names if name not in handled]
        handled.update(new)
        for name, kept in zip(new, kept_at(cluster, new, before - MOMENT), strict=True):
            doomed += _others(cluster, name, before, kept)
            while len(doomed) >= BATCH:
                yield doomed[:BATCH]
                del doomed[:BATCH]
        if reached is None:
            break
        yield []
    yield doomed


def forget(cluster: str, numbers: list[int]) -> int:
    """Delete these rows in one transaction. Returns how many existed."""
    with transaction.atomic():
        take_turn(cluster)
        return models.ChangeRecord.objects.filter(pk__in=sorted(numbers)).delete()[0]


def forget_watches(cluster: str, before: datetime) -> int:
    """Delete watched times from before the cut."""
    return models.WatchSpan.objects.filter(cluster=cluster, until__lt=before).delete()[0]


def cut_of_rows(rows: int) -> datetime | None:
    """Return the time before which changes must go to keep at most this many; None: keep all.

    It counts rows, which takes long: do not run it in the writing thread.
    """
    newest = (
        f"SELECT at FROM (SELECT at FROM {by_index('change_by_time')} WHERE cluster = %s "  # noqa: S608
        f"ORDER BY at DESC LIMIT {rows + 1}) AS newest"
    )
    clusters = stored_clusters()
    if not clusters:
        return None
    found = select(
        f"{' UNION ALL '.join([newest] * len(clusters))} ORDER BY at DESC LIMIT 1 OFFSET {rows}",
        clusters,
    )
    return moment(found[0][0]) + MOMENT if found else None


def _walk(
    cluster: str, before: datetime, after: Position | None
) -> tuple[list[ObjectName], Position | None]:
    """Return the Leases of the next old changes, and where to continue; None at the end."""
    beyond, position = ("AND (at, id) > (%s, %s)", [*after]) if after else ("", [])
    rows = select(
        f"SELECT namespace, name, at, id FROM {by_index('change_by_time')} "  # noqa: S608
        f"WHERE cluster = %s AND at < %s {beyond} ORDER BY at, id LIMIT {WALKED}",
        [cluster, before, *position],
    )
    names = list(dict.fromkeys(ObjectName(row[0], row[1]) for row in rows))
    more = len(rows) == WALKED
    return names, (moment(rows[-1][2]), rows[-1][3]) if more else None


def _others(
    cluster: str, name: ObjectName, before: datetime, kept: Sequence[tuple[int, str]]
) -> list[int]:
    """Yield a Lease's changes before the cut that may go: all of them if it was deleted."""
    dead = any(change == ChangeType.DELETED for _, change in kept[:1])
    stay = set() if dead else {number for number, _ in kept}
    rows = select(
        f"SELECT id FROM {by_index('change_by_lease')} "  # noqa: S608
        f"WHERE cluster = %s AND namespace = %s AND name = %s AND at < %s",
        [cluster, name.namespace, name.name, before],
    )
    return [number for (number,) in rows if number not in stay]


LONGER = timedelta(days=365)  # than changes
MAX_KEPT = 20_000  # of one cluster, the newest
# rows deleted in one transaction: the writer may wait for it


def forgettable_incidents(cluster: str, before: datetime) -> list[list[int]]:
    """Return batches of rows to delete. `before` is the time from which changes are kept."""
    notes = IncidentNote.objects.filter(cluster=cluster, incident=OuterRef("incident"))
    rows = IncidentRecord.objects.filter(~Exists(notes), cluster=cluster, ended__isnull=False)
    old = rows.filter(Q(ended__lt=before - LONGER) | Q(ended__lt=before) & ~Q(part_of=""))
    numbers = sorted({*_numbers(old), *_numbers(_beyond(cluster, rows))})
    return [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]


def forget_incidents(cluster: str, numbers: list[int]) -> int:
    """Delete these rows in one transaction. Returns how many existed."""
    with transaction.atomic():
        take_turn(cluster)
        return IncidentRecord.objects.filter(pk__in=numbers).delete()[0]


def _beyond(cluster: str, rows: QuerySet[IncidentRecord]) -> QuerySet[IncidentRecord]:
    newest = IncidentRecord.objects.filter(cluster=cluster).order_by("-began", "-incident")
    last = newest.values_list("began", flat=True)[MAX_KEPT - 1 : MAX_KEPT].first()
    return rows.none() if last is None else rows.filter(began__lt=last)


def _numbers(rows: QuerySet[IncidentRecord]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


OF_CLUSTER = (
    models.ChangeRecord, models.IncidentNote, models.IncidentRecord, models.Acknowledgement,
    models.NearMissCount, models.Notification, models.ReliabilityRecord,
    models.ReliabilityProgress, models.ReliabilityObjective, models.RefusedRow,
    models.WatchSpan, models.LeaseRecord, models.WatchRecord, models.KindOverride,
    models.VacancyMark, models.QuietTime,
)  # fmt: skip
CLUSTER_BATCH = 500


def forget_cluster(cluster: str) -> int:
    """Delete one batch of what is kept of a cluster. Returns how many rows; 0: nothing is left.

    What people did stays: the audit trail, deletions of many Leases, links.
    """
    with transaction.atomic():
        take_turn(cluster)
        for model in OF_CLUSTER:
            rows = model.objects.filter(cluster=cluster).order_by("pk")
            if numbers := list(rows.values_list("pk", flat=True)[:CLUSTER_BATCH]):
                return int(model.objects.filter(pk__in=numbers).delete()[0])
    return 0


KEPT_FOR = timedelta(days=365)
MAX_SECURITY_LINES = 200_000  # lines; refused programs and exports could write many
SECURITY_BATCH = 500


def forget_security(now: datetime) -> int:
    """Delete one batch of what is too old or too much. Returns how many lines it deleted."""
    rows = SecurityRecord.objects.order_by("at", "id")
    doomed = list(rows.filter(at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:SECURITY_BATCH])
    if not doomed:
        surplus = min(max(SecurityRecord.objects.count() - MAX_SECURITY_LINES, 0), SECURITY_BATCH)
        doomed = list(rows.values_list("pk", flat=True)[:surplus])
    return SecurityRecord.objects.filter(pk__in=doomed).delete()[0] if doomed else 0
