"""Find the totals of a period for the reliability page: each question reads one index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import chain

import msgspec
from django.db.models import QuerySet

from leases.domain.lease import ObjectName
from leases.domain.past.periods import Period
from leases.domain.past.reliability import NO_DATA, Totals, allowed_share
from leases.history.read.raw_select import select
from leases.history.reliability.save_totals import SUMMED, Scope
from leases.models import ReliabilityObjective, ReliabilityRecord

CHUNK = 1000


class PeriodTotals(msgspec.Struct, frozen=True, gc=False):
    """Totals of one Lease, namespace or cluster, counted up to `until`."""

    key: ObjectName
    totals: Totals
    until: datetime


class Found(msgspec.Struct, frozen=True):
    """All rows of a search, the largest lost share first; those without data come last."""

    rows: QuerySet[ReliabilityRecord]
    total: int
    missed: int
    without_data: int

    def part(self, place: slice) -> list[PeriodTotals]:
        return [_found(row) for row in self.rows[place]]

    def sum(self) -> PeriodTotals | None:
        """Return the totals of all rows together, counted up to the earliest of their moments."""
        found = list(self.all())
        if not found:
            return None
        totals = sum((one.totals for one in found), Totals())
        return PeriodTotals(ObjectName("", ""), totals, min(one.until for one in found))

    def all(self) -> Iterator[PeriodTotals]:
        return map(_found, self.rows.iterator(chunk_size=CHUNK))


def find_totals(
    cluster: str,
    period: Period,
    since: date,
    scope: Scope,
    *,
    objective: float,
    namespace: str = "",
    name: str = "",
) -> Found:
    rows = ReliabilityRecord.objects.filter(
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
    return Found(
        rows,
        total=rows.count(),
        missed=rows.filter(lost_share__gt=allowed_share(objective)).count(),
        without_data=rows.filter(lost_share=NO_DATA).count(),
    )


def sum_of(cluster: str, period: Period, since: date, key: ObjectName) -> PeriodTotals | None:
    """Return the totals of one Lease; without a name, those of its namespace or the cluster."""
    row = ReliabilityRecord.objects.filter(
        cluster=cluster, period=period.value, since=since, namespace=key.namespace, name=key.name
    ).first()
    return None if row is None else _found(row)


def by_day(
    cluster: str, days: Sequence[date], keys: Sequence[ObjectName]
) -> dict[ObjectName, dict[date, Totals]]:
    found: dict[ObjectName, dict[date, Totals]] = {key: {} for key in keys}
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
         Period.DAY.value, *(day.isoformat() for day in days)],
    )  # fmt: skip
    for namespace, name, since, *sums in rows:
        day = date.fromisoformat(str(since))
        totals = Totals(**dict(zip(SUMMED, sums, strict=True)))
        found[ObjectName(namespace, name)][day] = totals
    return found


def default_objective(cluster: str) -> float | None:
    row = ReliabilityObjective.objects.filter(cluster=cluster).first()
    return None if row is None else row.percent


def _found(row: ReliabilityRecord) -> PeriodTotals:
    totals = Totals(**{field: getattr(row, field) for field in SUMMED})
    return PeriodTotals(ObjectName(row.namespace, row.name), totals, row.until)
