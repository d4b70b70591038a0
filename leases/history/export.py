"""Changes as text for other programs: NDJSON and CSV, line by line, so that memory stays
constant."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from heapq import merge
from typing import Any

import msgspec

from leases.domain.change import Change
from leases.history.queries import known_clusters, oldest_first
from leases.history.streams import HistoryFilter

FIELDS = (
    "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "fields",
)  # fmt: skip
CHUNK = 2000


def format_moment(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as every export has it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def as_item(change: Change) -> dict[str, Any]:
    """One change with JSON's own types, its fields in the order of the contract."""
    item: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(change, field)
        item[field] = format_moment(value) if isinstance(value, datetime) else value
    return item


def changes(cluster: str | None, wanted: HistoryFilter) -> Iterator[Change]:
    """Matching changes, oldest first, a chunk of each cluster in memory at a time."""
    clusters = [cluster] if cluster is not None else known_clusters()
    found = [oldest_first(one, wanted, chunk=CHUNK) for one in clusters]
    return found[0] if len(found) == 1 else merge(*found, key=_at)


def ndjson(found: Iterable[Change]) -> Iterator[str]:
    """One JSON object a line."""
    for change in found:
        yield msgspec.json.encode(as_item(change)).decode() + "\n"


def as_csv(found: Iterable[Change]) -> Iterator[str]:
    """A header and one line a change; null is empty, fields are separated by blanks."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(FIELDS)
    for change in found:
        item = as_item(change) | {"fields": " ".join(change.fields)}
        writer.writerow(
            str(value).lower() if isinstance(value, bool) else value for value in item.values()
        )
        yield _drain(buffer)
    yield _drain(buffer)


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def _at(change: Change) -> datetime:
    return change.at
