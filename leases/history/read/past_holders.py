"""Who held what in a range, and how often a term of theirs ended in it: from the changes that end
one, so that nobody's whole history is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from leases.domain.changes.change import ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.database_text import from_stored
from leases.history.read.raw_select import by_index, moment, select

MAX_CHANGES = 5000  # changes of one kind and type that are looked at, the newest
# Each ends a term: of the holder before, but for the last, after which the same holder goes on.
_ENDS = (
    ChangeType.RELEASED,
    ChangeType.TAKEN_OVER,
    ChangeType.REPLACED,
    ChangeType.DELETED,
    ChangeType.RESTARTED,
)


class EndedTerms(msgspec.Struct, frozen=True, gc=False):
    """Terms of one holder of one Lease that ended in the range."""

    holder: str
    key: ObjectName
    kind: Kind
    terms: int


class Past(msgspec.Struct, frozen=True):
    """`since` is where the range begins that was looked through: the one asked for unless more
    happened than is read.
    """

    ended: tuple[EndedTerms, ...]
    since: datetime


def ended_terms(cluster: str, kinds: Iterable[Kind], since: datetime) -> Past:
    """The terms of Leases of these kinds that ended since then."""
    counts: dict[tuple[str, ObjectName, Kind], int] = {}
    begins = since
    for kind in kinds:
        for change in _ENDS:
            for holder, key, number, reached in _of(cluster, kind, change, since):
                known = counts.get((holder, key, kind), 0)
                counts[holder, key, kind] = known + number
                begins = max(begins, reached)
    ended = tuple(EndedTerms(*which, number) for which, number in counts.items())
    return Past(ended, begins)


def _of(
    cluster: str, kind: Kind, change: ChangeType, since: datetime
) -> Iterator[tuple[str, ObjectName, int, datetime]]:
    """Holder, Lease, number of terms, and from when on all were read."""
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
    """Where to begin so that no more are read than we want to wait for."""
    rows = select(
        f"SELECT at FROM {by_index('change_by_kind')} "  # noqa: S608
        "WHERE cluster = %s AND kind = %s AND change = %s AND at >= %s "
        f"ORDER BY at DESC, id DESC LIMIT 1 OFFSET {MAX_CHANGES}",
        [cluster, kind.value, change.value, since],
    )
    return moment(rows[0][0]) if rows else since
