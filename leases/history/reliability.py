"""Totals of days, weeks and quarters, which outlive the changes they are counted from.

Several replicas see the same renewals, and each sees them again for an hour: the largest count of
each few minutes stays.

Each row is replaced by what the changes say now, so that repeating a step, after a kill or at
another replica, changes nothing. Every function that writes is one short transaction.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec
from django.db import connection, transaction
from django.db.models import Count, QuerySet

from leases import models
from leases.domain import figures
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.database import execute_many, insert, moment, select, take_turn
from leases.history.lease_figures import MOMENT, Stretch, figures_of, read_stretch
from leases.history.states_as_of import gone_since
from leases.history.trusted_clock import near_the_last_trusted
from leases.history.watched_spans import watched_since

LATE = timedelta(hours=1)  # a day is final when the watch is stored up to so long after it
LATEST = timedelta(days=7)  # a change stored so long after its day does not count any more
LOST = timedelta(days=2)  # or so long after it, if nobody watches the cluster any more
NEVER = datetime(1, 1, 2, tzinfo=UTC)


def next_day(cluster: str) -> date | None:
    """Return the first day whose totals may change; None: the cluster was never watched."""
    row = models.ReliabilityProgress.objects.filter(cluster=cluster).first()
    if row is not None:
        return row.day
    first = watched_since(cluster)
    return None if first is None else first.astimezone(UTC).date()


def counted_until(cluster: str) -> datetime:
    """Return the moment before which changes are counted for good, and not needed any more."""
    row = models.ReliabilityProgress.objects.filter(cluster=cluster).first()
    return NEVER if row is None else figures.start_of(row.day)


def is_final(cluster: str, day: date, now: datetime) -> bool:
    """Whether no change of this day will be stored any more."""
    end = figures.start_of(day) + figures.DAY
    if now < end + LATE:
        return False
    if now >= end + LOST:
        return True
    row = models.WatchRecord.objects.filter(cluster=cluster).first()
    return row is not None and row.watched_until >= end + LATE


def finish_day(cluster: str, day: date) -> None:
    """Note that the totals of a day are final. Another replica may be further.

    If `reopen` went back meanwhile, the next count begins there.
    """
    following = day + figures.DAY
    with transaction.atomic():
        models.ReliabilityProgress.objects.get_or_create(
            cluster=cluster, defaults={"day": following}
        )
        models.ReliabilityProgress.objects.filter(cluster=cluster, day=day).update(day=following)
        models.NearMissCount.objects.filter(
            cluster=cluster, at__lt=figures.start_of(following)
        ).delete()


def reopen(cluster: str, times: Iterable[datetime], now: datetime) -> None:
    """Count again from the day of the earliest of these changes. Runs in the caller's transaction.

    Changes of before the first watched time that is still stored cannot be counted any more.
    """
    late = min((at for at in times if now - LATEST < at < now - LATE), default=None)
    if late is None:
        return
    later = models.ReliabilityProgress.objects.filter(
        cluster=cluster, day__gt=late.astimezone(UTC).date()
    )
    since = watched_since(cluster) if later.exists() else None
    if since is not None and near_the_last_trusted(now):
        later.update(day=max(since, late).astimezone(UTC).date())


STEP = 600  # seconds of one count
_LARGEST = {"sqlite": "MAX", "postgresql": "GREATEST"}


def step_of(at: datetime) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // STEP * STEP, UTC)


def save_near_misses(cluster: str, counts: Mapping[tuple[datetime, ObjectName], int]) -> None:
    """Store counts by step and Lease."""
    adapt = connection.ops.adapt_datetimefield_value
    rows = [
        (cluster, adapt(at), key.namespace, key.name, number)
        for (at, key), number in sorted(counts.items())
    ]
    largest = _LARGEST[connection.vendor]
    with transaction.atomic():
        insert(
            "INSERT INTO leases_nearmisscount (cluster, at, namespace, name, number)",
            rows,
            "ON CONFLICT (cluster, at, namespace, name) DO UPDATE SET "
            f"number = {largest}(leases_nearmisscount.number, excluded.number)",
        )


def near_misses_between(cluster: str, since: datetime, until: datetime) -> Counter[ObjectName]:
    rows = select(
        "SELECT namespace, name, SUM(number) FROM leases_nearmisscount "
        "WHERE cluster = %s AND at >= %s AND at < %s GROUP BY namespace, name",
        [cluster, since, until],
    )
    return Counter({ObjectName(namespace, name): int(total) for namespace, name, total in rows})


AT_ONCE = 100  # Leases counted in one step

PresentKind = Callable[[ObjectName], Kind | None]  # None: there is no such Lease now


class CountedDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day, or the part of today that is over, and the near misses in it."""

    cluster: str
    day: date
    stretch: Stretch
    near_misses: Mapping[ObjectName, int]


def counted_day(
    cluster: str, day: date, now: datetime, *, abandoned_after: timedelta
) -> CountedDay:
    since = figures.start_of(day)
    until = min(since + figures.DAY, now)
    return CountedDay(
        cluster=cluster,
        day=day,
        stretch=read_stretch(
            cluster, since=since, until=until, now=now, abandoned_after=abandoned_after
        ),
        near_misses=near_misses_between(cluster, since, until),
    )


def names_of(
    cluster: str, day: date, present: Iterable[ObjectName] | None = None
) -> Iterator[list[ObjectName]]:
    """Yield the Leases that may have existed in the day, AT_ONCE at a time.

    They exist now or were deleted since. `present`: the elections of now; None: read all Leases.
    """
    gone = gone_since(cluster, figures.start_of(day) - MOMENT, (Kind.ELECTION,))
    names = iter(sorted({*(_recorded(cluster) if present is None else present), *gone}))
    while some := list(islice(names, AT_ONCE)):
        yield some


def count(
    day: CountedDay, keys: Sequence[ObjectName], kind_now: PresentKind
) -> list[tuple[ObjectName, figures.Totals]]:
    """Return the totals of those that were elections and existed in the day."""
    found = []
    for key, (totals, kind) in figures_of(day.stretch, keys).items():
        if (kind_now(key) or kind) is Kind.ELECTION and totals != figures.Totals():
            near_misses = figures.Totals(near_misses=day.near_misses.get(key, 0))
            found.append((key, totals + near_misses))
    return found


def _recorded(cluster: str) -> Iterator[ObjectName]:
    rows = models.LeaseRecord.objects.filter(cluster=cluster).values_list("namespace", "name")
    return (ObjectName(*row) for row in rows.iterator())


T = TypeVar("T")
BATCH = 25  # Leases written in one transaction: the writer of changes may wait for it
OLD_ROWS = 200  # rows deleted in one transaction


class Scope(StrEnum):
    """What a row is the total of."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"
    LEASE = "lease"


SUMMED = ("gap_seconds", "watched_seconds", "unwatched_seconds", "handovers", "failovers",
           "near_misses")  # fmt: skip
_KEY = ("cluster", "period", "since", "namespace", "name")
_COLUMNS = (*_KEY, "scope", *SUMMED, "lost_share", "until")
_INSERT = f"INSERT INTO leases_reliability ({', '.join(_COLUMNS)})"
_REPLACE = f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET " + ", ".join(
    f"{column} = excluded.{column}" for column in _COLUMNS[len(_KEY) :]
)

_SUMS = ", ".join(f"SUM({column})" for column in SUMMED)
_SHARE = {
    "sqlite": "MIN(1.0, SUM(gap_seconds) / SUM(watched_seconds))",
    "postgresql": "LEAST(1.0, SUM(gap_seconds) / SUM(watched_seconds))",
}


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))


def save_day(
    cluster: str, day: date, until: datetime, counted: Sequence[tuple[ObjectName, figures.Totals]]
) -> None:
    """Store the day of some Leases, and sum up its week and its quarter anew.

    Near misses are not counted from changes: when a day is counted again, the stored number stays.
    """
    column = "near_misses"
    largest = f"{_LARGEST[connection.vendor]}(leases_reliability.{column}, excluded.{column})"
    replace = _REPLACE.replace(f"= excluded.{column}", f"= {largest}")
    rows = [
        _row(cluster, figures.Period.DAY, day, Scope.LEASE, key, totals, until)
        for key, totals in counted
    ]
    with transaction.atomic():
        take_turn(f"reliability {cluster}")
        insert(_INSERT, rows, replace)
        for period in (figures.Period.WEEK, figures.Period.QUARTER):
            _sum_days(cluster, period, figures.first_day(period, day), [key for key, _ in counted])


def sums_by_namespace(cluster: str, period: figures.Period, since: date) -> list[tuple[Any, ...]]:
    """Return the rows of the namespaces and of the cluster in a period. It only reads."""
    found = select(
        f"SELECT namespace, {_SUMS}, MAX(until) FROM leases_reliability "  # noqa: S608
        "WHERE cluster = %s AND period = %s AND since = %s AND scope = %s GROUP BY namespace",
        [cluster, period.value, since.isoformat(), Scope.LEASE.value],
    )
    rows, whole = [], figures.Totals()
    for namespace, *sums, until in found:
        totals = figures.Totals(**dict(zip(SUMMED, sums, strict=True)))
        whole += totals
        place, at = ObjectName(namespace, ""), moment(until)
        rows.append(_row(cluster, period, since, Scope.NAMESPACE, place, totals, at))
    if rows:
        at = max(moment(until) for *_, until in found)
        place = ObjectName("", "")
        rows.append(_row(cluster, period, since, Scope.CLUSTER, place, whole, at))
    return rows


def save_sums(rows: Sequence[tuple[Any, ...]]) -> None:
    with transaction.atomic():
        insert(_INSERT, rows, _REPLACE)


def old_rows(cluster: str, before: date) -> list[list[int]]:
    """Return batches of rows to delete: those of periods that ended before this day."""
    rows = chain.from_iterable(
        models.ReliabilityRecord.objects.filter(
            cluster=cluster, period=period, since__lt=figures.first_day(period, before)
        ).values_list("pk", flat=True)
        for period in figures.Period
    )
    numbers = list(rows)
    return [numbers[start : start + OLD_ROWS] for start in range(0, len(numbers), OLD_ROWS)]


def forget_rows(numbers: list[int]) -> int:
    return models.ReliabilityRecord.objects.filter(pk__in=numbers).delete()[0]


def _row(
    cluster: str,
    period: figures.Period,
    since: date,
    scope: Scope,
    key: ObjectName,
    totals: figures.Totals,
    until: datetime,
) -> tuple[Any, ...]:
    sums = [getattr(totals, column) for column in SUMMED]
    at = connection.ops.adapt_datetimefield_value(until)
    place = (cluster, period.value, since.isoformat(), key.namespace, key.name)
    return (*place, scope.value, *sums, totals.lost_share, at)


def _sum_days(
    cluster: str, period: figures.Period, since: date, keys: Sequence[ObjectName]
) -> None:
    days = ", ".join(f"'{day.isoformat()}'" for day in figures.days_of(period, since))
    sql = (
        f"{_INSERT} SELECT cluster, %s, %s, namespace, name, scope, {_SUMS}, "  # noqa: S608
        f"CASE WHEN SUM(watched_seconds) > 0 THEN {_SHARE[connection.vendor]} "
        f"ELSE {figures.NO_DATA} END, "
        f"MAX(until) FROM leases_reliability WHERE cluster = %s AND period = 'day' "
        f"AND since IN ({days}) AND namespace = %s AND name = %s "
        f"GROUP BY cluster, namespace, name, scope {_REPLACE}"
    )
    first = since.isoformat()
    execute_many(sql, [(period.value, first, cluster, key.namespace, key.name) for key in keys])


CHUNK = 1000
MAX_AT_RISK = 10_000  # rows that are judged one by one


class PeriodTotals(msgspec.Struct, frozen=True, gc=False):
    """Totals of one Lease, namespace or cluster, counted up to `until`."""

    key: ObjectName
    totals: figures.Totals
    until: datetime


class Found(msgspec.Struct, frozen=True):
    """All rows of a search, the largest lost share first; those without data come last."""

    rows: QuerySet[models.ReliabilityRecord]
    total: int
    missed: int
    at_risk: int  # of a period that goes on: they would miss it if it ended now
    without_data: int
    remaining: float  # seconds of the period that are still to come, for each Lease
    leases: Counter[str]  # in each namespace, of a period that goes on

    def remaining_of(self, key: ObjectName) -> float:
        """Return the same for the Leases of a row together."""
        if key.name or not self.remaining:
            return self.remaining
        number = self.leases[key.namespace] if key.namespace else self.leases.total()
        return self.remaining * number

    def part(self, place: slice) -> list[PeriodTotals]:
        return [_found(row) for row in self.rows[place]]

    def sum(self) -> PeriodTotals | None:
        """Return the totals of all rows together, counted up to the earliest of their moments."""
        found = list(self.all())
        if not found:
            return None
        totals = sum((one.totals for one in found), figures.Totals())
        return PeriodTotals(ObjectName("", ""), totals, min(one.until for one in found))

    def all(self) -> Iterator[PeriodTotals]:
        return map(_found, self.rows.iterator(chunk_size=CHUNK))


def find_totals(
    cluster: str,
    period: figures.Period,
    since: date,
    scope: Scope,
    *,
    objective: float,
    remaining: float = 0.0,
    namespace: str = "",
    name: str = "",
) -> Found:
    """`remaining`: how many seconds of the period are still to come, for each Lease."""
    rows = models.ReliabilityRecord.objects.filter(
        cluster=cluster, period=period.value, since=since
    ).order_by("-lost_share", "namespace", "name")
    if namespace:
        # Without the scope SQLite reads the index of names, not all rows in the order of loss.
        whole = {"name": ""} if scope is Scope.NAMESPACE else {"name__gt": ""}
        rows = rows.filter(namespace=namespace, **whole)
    else:
        rows = rows.filter(scope=scope.value)
    if name:
        rows = rows.filter(name=name)
    lost = rows.filter(lost_share__gt=figures.allowed_share(objective))
    found = Found(
        rows,
        total=rows.count(),
        missed=lost.count(),
        at_risk=0,
        without_data=rows.filter(lost_share=figures.NO_DATA).count(),
        remaining=remaining,
        leases=leases_of(cluster, period, since) if remaining else Counter(),
    )
    if not remaining:
        return found
    missed = sum(
        figures.misses(one.totals, objective, found.remaining_of(one.key))
        for one in map(_found, lost[:MAX_AT_RISK])
    )
    return msgspec.structs.replace(found, missed=missed, at_risk=found.missed - missed)


def leases_of(cluster: str, period: figures.Period, since: date) -> Counter[str]:
    """Return how many Leases each namespace had in a period."""
    rows = models.ReliabilityRecord.objects.filter(
        cluster=cluster, period=period.value, since=since, scope=Scope.LEASE.value
    )
    numbers = rows.values("namespace").annotate(number=Count("pk"))
    return Counter({one["namespace"]: one["number"] for one in numbers})


def sum_of(
    cluster: str, period: figures.Period, since: date, key: ObjectName
) -> PeriodTotals | None:
    """Return the totals of one Lease; without a name, those of its namespace or the cluster."""
    row = models.ReliabilityRecord.objects.filter(
        cluster=cluster, period=period.value, since=since, namespace=key.namespace, name=key.name
    ).first()
    return None if row is None else _found(row)


def by_day(
    cluster: str, days: Sequence[date], keys: Sequence[ObjectName]
) -> dict[ObjectName, dict[date, figures.Totals]]:
    found: dict[ObjectName, dict[date, figures.Totals]] = {key: {} for key in keys}
    if not keys:
        return found
    names = ", ".join(["(%s, %s)"] * len(keys))
    within = ", ".join(["%s"] * len(days))
    columns = ", ".join(f"total.{column}" for column in ("since", *SUMMED))
    # CROSS JOIN: SQLite looks up each name in turn, in the index of names.
    rows = select(
        f"WITH wanted (namespace, name) AS (VALUES {names}) "  # noqa: S608
        f"SELECT total.namespace, total.name, {columns} "
        "FROM wanted CROSS JOIN leases_reliability AS total "
        "WHERE total.cluster = %s AND total.period = %s "
        f"AND total.since IN ({within}) "
        "AND total.namespace = wanted.namespace AND total.name = wanted.name",
        [*chain.from_iterable((key.namespace, key.name) for key in keys), cluster,
         figures.Period.DAY.value, *(day.isoformat() for day in days)],
    )  # fmt: skip
    for namespace, name, since, *sums in rows:
        day = date.fromisoformat(str(since))
        totals = figures.Totals(**dict(zip(SUMMED, sums, strict=True)))
        found[ObjectName(namespace, name)][day] = totals
    return found


def default_objective(cluster: str) -> float | None:
    row = models.ReliabilityObjective.objects.filter(cluster=cluster).first()
    return None if row is None else row.percent


def _found(row: models.ReliabilityRecord) -> PeriodTotals:
    totals = figures.Totals(**{field: getattr(row, field) for field in SUMMED})
    return PeriodTotals(ObjectName(row.namespace, row.name), totals, row.until)
