"""Export changes as NDJSON and CSV, line by line, in constant memory.

NDJSON is exact. In CSV, texts that a spreadsheet would run are made harmless: see csv_cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import merge
from operator import attrgetter
from typing import Any

import msgspec

from leases.domain.changes.change import Change
from leases.history.read.csv_cells import csv_cell
from leases.history.read.find_changes import known_clusters, oldest_first
from leases.history.read.indexed_search import HistoryFilter
from leases.wire.microtime import format_microtime

_OURS = ("renewed_at", "renewal", "stored_identity")
FIELDS = tuple(name for name in Change.__struct_fields__ if name not in _OURS)
CHUNK = 2000


def as_item(change: Change) -> dict[str, Any]:
    """Return one change as JSON values, in the order of the contract."""
    item: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(change, field)
        item[field] = format_microtime(value) if isinstance(value, datetime) else value
    return item


def changes(cluster: str | None, wanted: HistoryFilter) -> Iterator[Change]:
    """Yield matching changes, oldest first, with one chunk of each cluster in memory."""
    clusters = [cluster] if cluster is not None else known_clusters()
    found = [oldest_first(one, wanted, chunk=CHUNK) for one in clusters]
    return found[0] if len(found) == 1 else merge(*found, key=attrgetter("at"))


def ndjson(found: Iterable[Change]) -> Iterator[str]:
    """Yield one JSON object per line."""
    for change in found:
        yield msgspec.json.encode(as_item(change)).decode() + "\n"


def as_csv(found: Iterable[Change]) -> Iterator[str]:
    """Yield a header and one line per change. Null is empty; fields are separated by spaces."""
    yield ",".join(FIELDS) + "\r\n"
    for change in found:
        item = as_item(change) | {"fields": " ".join(change.fields)}
        yield ",".join(map(csv_cell, item.values())) + "\r\n"
