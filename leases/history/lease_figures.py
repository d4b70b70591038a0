"""The figures of Leases in a stretch of time, from their changes.

A Lease is counted in pieces of at most MAX_CHANGES, whose totals add up.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from leases.domain.change import Change
from leases.domain.figures import DEFAULT_ABANDONED_AFTER, Span, Totals, totals_of
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.database import by_index, select
from leases.history.overrides import marks_between
from leases.history.rows import COLUMNS, to_change
from leases.history.states_as_of import changes_before
from leases.history.watched_spans import blind_between

MAX_CHANGES = 5000  # changes of one Lease in memory
MOMENT = timedelta(microseconds=1)


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A time from `since` to before `until`, and what is not counted in it."""

    cluster: str
    since: datetime
    until: datetime
    blind: tuple[Span, ...]
    marks: Mapping[ObjectName, Sequence[Span]]
    abandoned_after: timedelta

    @property
    def unwatched_seconds(self) -> float:
        return sum((until - since).total_seconds() for since, until in self.blind)


def read_stretch(
    cluster: str,
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    abandoned_after: timedelta = DEFAULT_ABANDONED_AFTER,
) -> Stretch:
    return Stretch(
        cluster=cluster,
        since=since,
        until=until,
        blind=blind_between(cluster, since=since, until=until, now=now),
        marks=marks_between(cluster, since, until),
        abandoned_after=abandoned_after,
    )


def figures_of(
    stretch: Stretch, keys: Sequence[ObjectName]
) -> dict[ObjectName, tuple[Totals, Kind | None]]:
    """Return the totals of each Lease, and its kind then; None: it has no change up to the end."""
    known = changes_before(stretch.cluster, keys, stretch.since - MOMENT)
    return {key: _count(stretch, key, known.get(key, [])) for key in keys}


def _count(stretch: Stretch, key: ObjectName, known: list[Change]) -> tuple[Totals, Kind | None]:
    totals, kind, since = Totals(), None, stretch.since
    while True:
        changes, until = _piece(stretch, key, since)
        if known or changes:
            kind = [*known, *changes][-1].kind
        totals += totals_of(
            [*known, *changes],
            since=since,
            until=until,
            blind=stretch.blind,
            may_be_vacant=stretch.marks.get(key, ()),
            abandoned_after=stretch.abandoned_after,
        )
        if until >= stretch.until:
            return totals, kind
        since = until
        known = changes_before(stretch.cluster, [key], until - MOMENT).get(key, [])


def _piece(stretch: Stretch, key: ObjectName, since: datetime) -> tuple[list[Change], datetime]:
    """Return the next changes of the stretch, and up to when they are all of them."""
    rows = select(
        f"SELECT {COLUMNS} FROM {by_index('change_by_lease')} WHERE cluster = %s "  # noqa: S608
        f"AND namespace = %s AND name = %s AND at >= %s AND at < %s "
        f"ORDER BY at, id LIMIT {MAX_CHANGES}",
        [stretch.cluster, key.namespace, key.name, since, stretch.until],
    )
    changes = [to_change(row) for row in rows]
    if len(changes) < MAX_CHANGES or changes[-1].at == changes[0].at:
        return changes, stretch.until
    until = changes[-1].at  # there may be more changes of this moment
    return [change for change in changes if change.at < until], until
