"""Count the changes of each Lease in a stretch of time, and how long nobody held it.

The newest TALLIED changes are counted, so that a stretch of any length answers at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.db import connection

from leases.domain.changes.change import HOLDER_CHANGES, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.read.raw_select import Row, by_index, moment, select
from leases.models import END_A_GAP

TALLIED = 40_000
# Seconds without a holder that a change ended, without those before the stretch.
_INSIDE = {
    "sqlite": "MIN(gap_seconds, (julianday(at) - julianday(%s)) * 86400.0)",
    "postgresql": "LEAST(gap_seconds, EXTRACT(EPOCH FROM (at - CAST(%s AS timestamptz))))",
}
_LOST = (ChangeType.EXPIRED.value, ChangeType.RELEASED.value)
_NOT_LOST = (*END_A_GAP, ChangeType.CREATED.value, ChangeType.DELETED.value)


class LeaseTotals(msgspec.Struct, frozen=True, gc=False):
    """The changes of one Lease in a stretch; `gap_seconds` without a holder."""

    key: ObjectName
    kind: Kind
    changes: int
    handovers: int  # how often another holder took it
    gap_seconds: float
    regained: bool  # a change says that it was held, or did not exist


class StretchTotals(msgspec.Struct, frozen=True):
    """`counted_from` is set if older changes of the stretch were not counted."""

    leases: list[LeaseTotals]
    counted_from: datetime | None


def stretch_totals(
    cluster: str, kinds: Sequence[Kind], *, since: datetime, until: datetime
) -> StretchTotals:
    """Count from `since` to before `until`; no kinds mean all."""
    where = "cluster = %s AND at >= %s AND at < %s"
    marks = ", ".join(["%s"] * len(kinds))
    words = [kind.value for kind in kinds]
    newest = (
        f"SELECT namespace, name, kind, change, at, gap_seconds FROM {by_index('change_by_time')} "  # noqa: S608
        f"WHERE {where} {f'AND kind IN ({marks})' if kinds else ''} "
        f"ORDER BY at DESC, id DESC LIMIT {TALLIED}"
    )
    rows = select(
        f"SELECT namespace, name, MAX(kind), COUNT(*), "  # noqa: S608
        f"SUM(CASE WHEN change IN {_words(HOLDER_CHANGES)} THEN 1 ELSE 0 END), "
        f"SUM(CASE WHEN change IN {END_A_GAP} THEN {_INSIDE[connection.vendor]} ELSE 0 END), "
        f"MAX(CASE WHEN change IN {_LOST} THEN at END), "
        f"MAX(CASE WHEN change IN {_NOT_LOST} THEN at END), MIN(at) "
        f"FROM ({newest}) AS newest GROUP BY namespace, name",
        [since, cluster, since, until, *words],
    )
    found = [_totals(row, until) for row in rows]
    whole = sum(one.changes for one in found) < TALLIED
    return StretchTotals(found, None if whole else min(moment(row[-1]) for row in rows))


def _totals(row: Row, until: datetime) -> LeaseTotals:
    namespace, name, kind, changes, handovers, gap_seconds, lost, held, _ = row
    gap = float(gap_seconds or 0.0)
    if lost is not None and (held is None or moment(held) < moment(lost)):
        gap += (until - moment(lost)).total_seconds()
    return LeaseTotals(
        key=ObjectName(namespace, name),
        kind=Kind(kind),
        changes=changes,
        handovers=handovers,
        gap_seconds=gap,
        regained=held is not None,
    )


def _words(changes: Sequence[ChangeType]) -> str:
    return str(tuple(change.value for change in changes))
