"""The ranked Leases of a stretch as JSON items and as CSV, see docs/api.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dashboard.parts.query.time_range import TimeRange
from leases.history.read.csv_cells import csv_cell
from leases.history.read.stretch_totals import LeaseTotals
from leases.wire.microtime import format_microtime

FIELDS = ("cluster", "namespace", "name", "kind", "from", "to", "changes", "handovers",
          "gap_seconds")  # fmt: skip


def ranked_item(cluster: str, one: LeaseTotals, shown: TimeRange) -> dict[str, Any]:
    values = (
        cluster,
        one.key.namespace,
        one.key.name,
        one.kind.value,
        format_microtime(shown.since),
        format_microtime(shown.until),
        one.changes,
        one.handovers,
        round(one.gap_seconds, 3),
    )
    return dict(zip(FIELDS, values, strict=True))


def ranked_csv(cluster: str, ranked: Iterable[LeaseTotals], shown: TimeRange) -> Iterator[str]:
    """A header and one line per Lease."""
    yield ",".join(FIELDS) + "\r\n"
    for one in ranked:
        yield ",".join(map(csv_cell, ranked_item(cluster, one, shown).values())) + "\r\n"
