"""Near misses are seen in memory only; these counts keep them until their day is counted.

Several replicas see the same renewals, and each sees them again for an hour: the largest count of
each few minutes stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from django.db import connection, transaction

from leases.domain.lease import ObjectName
from leases.history.read.raw_select import select
from leases.history.write.bulk_insert import insert

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
