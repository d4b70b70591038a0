"""Store the totals of days, and from them those of weeks, quarters, namespaces and the cluster.

Each row is replaced by what the changes say now, so that repeating a step, after a kill or at
another replica, changes nothing. Every function that writes is one short transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from enum import StrEnum
from itertools import chain
from typing import Any, TypeVar

from django.db import connection, transaction

from leases.domain.lease import ObjectName
from leases.domain.past.periods import Period, days_of, first_day
from leases.domain.past.reliability import NO_DATA, Totals
from leases.history.read.raw_select import moment, select
from leases.history.write.bulk_insert import execute_many, insert
from leases.history.write.replica_lock import take_turn
from leases.models import ReliabilityRecord

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
_LARGEST = {"sqlite": "MAX", "postgresql": "GREATEST"}
_SUMS = ", ".join(f"SUM({column})" for column in SUMMED)
_SHARE = {
    "sqlite": "MIN(1.0, SUM(gap_seconds) / SUM(watched_seconds))",
    "postgresql": "LEAST(1.0, SUM(gap_seconds) / SUM(watched_seconds))",
}


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))


def save_day(
    cluster: str, day: date, until: datetime, counted: Sequence[tuple[ObjectName, Totals]]
) -> None:
    """Store the day of some Leases, and sum up its week and its quarter anew.

    Near misses are not counted from changes: when a day is counted again, the stored number stays.
    """
    column = "near_misses"
    largest = f"{_LARGEST[connection.vendor]}(leases_reliability.{column}, excluded.{column})"
    replace = _REPLACE.replace(f"= excluded.{column}", f"= {largest}")
    rows = [
        _row(cluster, Period.DAY, day, Scope.LEASE, key, totals, until) for key, totals in counted
    ]
    with transaction.atomic():
        take_turn(f"reliability {cluster}")
        insert(_INSERT, rows, replace)
        for period in (Period.WEEK, Period.QUARTER):
            _sum_days(cluster, period, first_day(period, day), [key for key, _ in counted])


def sums_by_namespace(cluster: str, period: Period, since: date) -> list[tuple[Any, ...]]:
    """Return the rows of the namespaces and of the cluster in a period. It only reads."""
    found = select(
        f"SELECT namespace, {_SUMS}, MAX(until) FROM leases_reliability "  # noqa: S608
        "WHERE cluster = %s AND period = %s AND since = %s AND scope = %s GROUP BY namespace",
        [cluster, period.value, since.isoformat(), Scope.LEASE.value],
    )
    rows, whole = [], Totals()
    for namespace, *sums, until in found:
        totals = Totals(**dict(zip(SUMMED, sums, strict=True)))
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
        ReliabilityRecord.objects.filter(
            cluster=cluster, period=period, since__lt=first_day(period, before)
        ).values_list("pk", flat=True)
        for period in Period
    )
    numbers = list(rows)
    return [numbers[start : start + OLD_ROWS] for start in range(0, len(numbers), OLD_ROWS)]


def forget_rows(numbers: list[int]) -> int:
    return ReliabilityRecord.objects.filter(pk__in=numbers).delete()[0]


def _row(
    cluster: str,
    period: Period,
    since: date,
    scope: Scope,
    key: ObjectName,
    totals: Totals,
    until: datetime,
) -> tuple[Any, ...]:
    sums = [getattr(totals, column) for column in SUMMED]
    at = connection.ops.adapt_datetimefield_value(until)
    place = (cluster, period.value, since.isoformat(), key.namespace, key.name)
    return (*place, scope.value, *sums, totals.lost_share, at)


def _sum_days(cluster: str, period: Period, since: date, keys: Sequence[ObjectName]) -> None:
    days = ", ".join(f"'{day.isoformat()}'" for day in days_of(period, since))
    sql = (
        f"{_INSERT} SELECT cluster, %s, %s, namespace, name, scope, {_SUMS}, "  # noqa: S608
        f"CASE WHEN SUM(watched_seconds) > 0 THEN {_SHARE[connection.vendor]} ELSE {NO_DATA} END, "
        f"MAX(until) FROM leases_reliability WHERE cluster = %s AND period = 'day' "
        f"AND since IN ({days}) AND namespace = %s AND name = %s "
        f"GROUP BY cluster, namespace, name, scope {_REPLACE}"
    )
    first = since.isoformat()
    execute_many(sql, [(period.value, first, cluster, key.namespace, key.name) for key in keys])
