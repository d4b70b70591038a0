"""Export changes as NDJSON and CSV, in constant memory; CSV cells that no spreadsheet runs.

Spreadsheets run cells that look like formulas.
Source: https://owasp.org/www-community/attacks/CSV_Injection

NDJSON is exact. In CSV, texts that a spreadsheet would run are made harmless: see csv_cells.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from operator import attrgetter
from typing import Any

import msgspec

from leases.domain.change import Change, UnreadableChange
from leases.history.find_changes import known_clusters, oldest_first
from leases.history.indexed_search import HistoryFilter
from leases.wire.microtime import format_microtime

# Full-width ones too.
RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NEEDS_QUOTES = re.compile("[\",;']")
# Control characters become their symbols, or the replacement character.
_SHOWN = (
    {code: 0x2400 + code for code in range(0x20)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


def csv_cell(value: object) -> str:
    """Make a text safe for spreadsheets; some take a semicolon as the end of a cell."""
    if not isinstance(value, str):
        return "" if value is None else str(value).lower()
    if not value.isprintable():
        value = value.translate(_SHOWN)
    if value.startswith(RUN_BY_SPREADSHEETS):
        value = f"'{value}"
    if not _NEEDS_QUOTES.search(value):
        return value
    quoted = value.replace('"', '""')
    return f'"{quoted}"'


_OURS = ("renewed_at", "own_identity")
FIELDS = tuple(name for name in Change.__struct_fields__ if name not in _OURS)
CHUNK, SMALLEST = 2000, 200  # changes that are read at once


def as_item(change: Change) -> dict[str, Any]:
    """Return one change as JSON values, in the order of the contract."""
    if isinstance(change, UnreadableChange):
        return _unreadable(change)
    item: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(change, field)
        item[field] = format_microtime(value) if isinstance(value, datetime) else value
    return item


def _unreadable(change: UnreadableChange) -> dict[str, Any]:
    """Names what is known, and the number of the row; null is not known."""
    known = {"cluster": change.cluster, "namespace": change.namespace, "name": change.name}
    known |= {"change": "unreadable", "at": format_microtime(change.at)}
    return dict.fromkeys(FIELDS) | known | {"uid": change.uid, "fields": [f"row:{change.row}"]}


def changes(cluster: str | Sequence[str] | None, wanted: HistoryFilter) -> Iterator[Change]:
    """Yield matching changes, oldest first, with one chunk of each cluster in memory. None means
    all clusters that history knows.
    """
    clusters = [cluster] if isinstance(cluster, str) else cluster
    if clusters is None:
        clusters = known_clusters()
    chunk = max(SMALLEST, CHUNK // max(1, len(clusters)))
    found = [oldest_first(one, wanted, chunk=chunk) for one in clusters]
    return found[0] if len(found) == 1 else merge(*found, key=attrgetter("at"))


def ndjson(found: Iterable[Change]) -> Iterator[str]:
    """Yield one JSON object per line."""
    for change in found:
        yield msgspec.json.encode(as_item(change)).decode() + "\n"


def as_csv(found: Iterable[Change]) -> Iterator[str]:
    """Yield a header and one line per change. Null is empty; fields are separated by spaces."""
    yield ",".join(FIELDS) + "\r\n"
    for change in found:
        item = as_item(change)
        item["fields"] = " ".join(item["fields"])
        yield ",".join(map(csv_cell, item.values())) + "\r\n"
