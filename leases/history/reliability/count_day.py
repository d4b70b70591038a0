"""Count the totals of elections in one day from the stored changes. It only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice

import msgspec

from leases.domain.changes.change import Change
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.past.periods import DAY, start_of
from leases.domain.past.reliability import Span, Totals, totals_of
from leases.history.change_row import COLUMNS, to_change
from leases.history.read.raw_select import by_index, select
from leases.history.read.states_as_of import changes_before, gone_since, states_at
from leases.history.reliability.near_misses import near_misses_between
from leases.history.vacancy_marks import marks_between
from leases.history.write.watched_spans import unwatched_times
from leases.models import LeaseRecord

AT_ONCE = 100  # Leases counted in one step
MAX_CHANGES = 5000  # changes of one Lease in memory
MOMENT = timedelta(microseconds=1)
AROUND = timedelta(minutes=1)  # read around a day: a pause may lie across midnight

PresentKind = Callable[[ObjectName], Kind | None]  # None: there is no such Lease now


class CountedDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day, or the part of today that is over, and what was not counted in it."""

    cluster: str
    day: date
    until: datetime
    blind: tuple[Span, ...]
    marks: dict[ObjectName, list[Span]]
    near_misses: Mapping[ObjectName, int]
    abandoned_after: timedelta

    @property
    def since(self) -> datetime:
        return start_of(self.day)


def counted_day(
    cluster: str, day: date, now: datetime, *, abandoned_after: timedelta
) -> CountedDay:
    since = start_of(day)
    until = min(since + DAY, now)
    around = unwatched_times(cluster, since=since - AROUND, until=until + AROUND, now=now)
    cut = ((max(one.since, since), min(one.until, until)) for one in around)
    return CountedDay(
        cluster=cluster,
        day=day,
        until=until,
        blind=tuple((a, b) for a, b in cut if a < b),
        marks=marks_between(cluster, since, until),
        near_misses=near_misses_between(cluster, since, until),
        abandoned_after=abandoned_after,
    )


def names_of(
    day: CountedDay, present: Iterable[ObjectName] | None = None
) -> Iterator[list[ObjectName]]:
    """Yield the Leases that may have existed in the day, AT_ONCE at a time.

    They exist now or were deleted since. `present`: the elections of now; None: read all Leases.
    """
    gone = gone_since(day.cluster, day.since - MOMENT, (Kind.ELECTION,))
    names = iter(sorted({*(_recorded(day.cluster) if present is None else present), *gone}))
    while some := list(islice(names, AT_ONCE)):
        yield some


def count(
    day: CountedDay, keys: Sequence[ObjectName], kind_now: PresentKind
) -> list[tuple[ObjectName, Totals]]:
    """Return the totals of those that were elections and existed in the day."""
    before = day.since - MOMENT
    known = changes_before(day.cluster, keys, before)
    states = states_at(day.cluster, keys, before, abandoned_after=day.abandoned_after)
    abandoned = {state.key for state in states if state.abandoned}
    found = []
    for key in keys:
        totals, kind = _count_one(day, key, known.get(key, []), abandoned=key in abandoned)
        if (kind_now(key) or kind) is Kind.ELECTION and totals != Totals():
            near_misses = Totals(near_misses=day.near_misses.get(key, 0))
            found.append((key, totals + near_misses))
    return found


def _count_one(
    day: CountedDay, key: ObjectName, known: list[Change], *, abandoned: bool
) -> tuple[Totals, Kind | None]:
    """Add up the totals of pieces of the day that have at most MAX_CHANGES each."""
    totals, kind, since = Totals(), None, day.since
    while True:
        changes, until = _piece(day, key, since)
        if known or changes:
            kind = [*known, *changes][-1].kind
        totals += totals_of(
            [*known, *changes],
            since=since,
            until=until,
            blind=day.blind,
            may_be_vacant=day.marks.get(key, ()),
            abandoned=abandoned,
        )
        if until >= day.until:
            return totals, kind
        since, abandoned = until, False
        known = changes_before(day.cluster, [key], until - MOMENT).get(key, [])


def _piece(day: CountedDay, key: ObjectName, since: datetime) -> tuple[list[Change], datetime]:
    """Return the next changes of the day, and up to when they are all of them."""
    rows = select(
        f"SELECT {COLUMNS} FROM {by_index('change_by_lease')} WHERE cluster = %s "  # noqa: S608
        f"AND namespace = %s AND name = %s AND at >= %s AND at < %s "
        f"ORDER BY at, id LIMIT {MAX_CHANGES}",
        [day.cluster, key.namespace, key.name, since, day.until],
    )
    changes = [to_change(row) for row in rows]
    if len(changes) < MAX_CHANGES or changes[-1].at == changes[0].at:
        return changes, day.until
    until = changes[-1].at  # there may be more changes of this moment
    return [change for change in changes if change.at < until], until


def _recorded(cluster: str) -> Iterator[ObjectName]:
    rows = LeaseRecord.objects.filter(cluster=cluster).values_list("namespace", "name")
    return (ObjectName(*row) for row in rows.iterator())
