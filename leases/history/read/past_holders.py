"""Who held what in a range, and how many of their terms ended in it.

Only changes that end a term are read, so the cost does not depend on the whole history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.database_text import from_stored
from leases.history.read.raw_select import by_index, moment, select

MAX_CHANGES = 5000  # changes read of one kind and type, the newest
# Each ends a term of the previous holder; after the last one the same holder continues.
_ENDS = (
    ChangeType.RELEASED,
    ChangeType.TAKEN_OVER,
    ChangeType.REPLACED,
    ChangeType.DELETED,
    ChangeType.RESTARTED,
)


class EndedTerms(msgspec.Struct, frozen=True, gc=False):
    holder: str
    key: ObjectName
    kind: Kind
    terms: int


class Past(msgspec.Struct, frozen=True):
    """`since` is where reading began: later than asked for if there were too many changes."""

    ended: tuple[EndedTerms, ...]
    since: datetime


def ended_terms(cluster: str, kinds: Iterable[Kind], since: datetime) -> Past:
    """Return the terms of Leases of these kinds that ended since then."""
    counts: Counter[tuple[str, ObjectName, Kind]] = Counter()
    begins = since
    for kind in kinds:
        for change in _ENDS:
            for holder, key, number, reached in _of(cluster, kind, change, since):
                counts[holder, key, kind] += number
                begins = max(begins, reached)
    ended = tuple(EndedTerms(*which, number) for which, number in counts.items())
    return Past(ended, begins)


def _of(
    cluster: str, kind: Kind, change: ChangeType, since: datetime
) -> Iterator[tuple[str, ObjectName, int, datetime]]:
    """Return holder, Lease, number of terms, and from when on all of them were read."""
    edge = _edge(cluster, kind, change, since)
    column = "holder" if change is ChangeType.RESTARTED else "previous_holder"
    rows = select(
        f"SELECT {column}, namespace, name, COUNT(*) FROM {by_index('change_by_kind')} "  # noqa: S608
        "WHERE cluster = %s AND kind = %s AND change = %s AND at >= %s "
        f"AND {column} IS NOT NULL GROUP BY {column}, namespace, name",
        [cluster, kind.value, change.value, edge],
    )
    for holder, namespace, name, number in rows:
        yield from_stored(holder), ObjectName(namespace, name), number, edge


def _edge(cluster: str, kind: Kind, change: ChangeType, since: datetime) -> datetime:
    """Return where to start so that at most MAX_CHANGES are read."""
    rows = select(
        f"SELECT at FROM {by_index('change_by_kind')} "  # noqa: S608
        "WHERE cluster = %s AND kind = %s AND change = %s AND at >= %s "
        f"ORDER BY at DESC, id DESC LIMIT 1 OFFSET {MAX_CHANGES}",
        [cluster, kind.value, change.value, since],
    )
    return moment(rows[0][0]) if rows else since
