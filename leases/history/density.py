"""How many changes there were in each of many equal steps of time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import connection

from leases import models
from leases.domain.change import ChangeType
from leases.domain.kind import Kind

_EPOCH = {
    "sqlite": "(julianday(at) - 2440587.5) * 86400.0",
    "postgresql": "EXTRACT(EPOCH FROM at)",
}


def density(
    cluster: str, kinds: Collection[Kind], since: datetime, step: timedelta, number: int
) -> list[int]:
    """Changes of Leases of these kinds in each of `number` steps from `since`."""
    rows = models.Change.objects.filter(
        cluster=cluster,
        kind__in=[kind.value for kind in kinds],
        change__in=[change.value for change in ChangeType],
        at__gte=since,
        at__lt=since + number * step,
    )
    inside, parameters = rows.values("at").query.sql_with_params()
    slot = f"FLOOR(({_EPOCH[connection.vendor]} - %s) / %s)"
    counts = [0] * number
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {slot} AS slot, COUNT(*) FROM ({inside}) AS inside GROUP BY slot",  # noqa: S608
            [since.timestamp(), step.total_seconds(), *parameters],
        )
        for place, count in cursor.fetchall():
            counts[min(number - 1, max(0, int(place)))] += count
    return counts
